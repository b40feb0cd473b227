"""The replica fixed point at zero temperature, for any number of groups and of coupled students.

With the symbols of Sarao Mannelli et al. (2022) in vector form: students k, each trained on its own groups (one student
on all of them, or one per group), have conjugate parameters Lam_k, chi_k and pulls H_kj towards every mean and teacher
j. From these, with the precision P of ridge and coupling and the Gram matrix G of means and teachers,

    K = (P + diag Lam)^-1,   overlaps = K H G,   Q = K (H G H' + diag chi) K,   dQ_k = K_kk

and back, with averages over the examples of each group (`averages`) and V_g = D_g dQ_k,

    Lam_k = -alpha sum_g p_g D_g E[df],  chi_k = alpha sum_g p_g D_g E[f^2],
    H_k,mean g = alpha p_g E[f],         H_k,teacher g = alpha p_g sqrt(D_g) E[df/dnu],   sum_g p_g E[f] = 0 (bias).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from tiltmeter.losses import Loss
from tiltmeter.theory.dynamics.averages import Averages, averages
from tiltmeter.theory.problem.objective import ProblemArrays

#: x -> (F(x) - x, its size in the units that matter).
Turn: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, float]]
#: (from, to) -> a step towards `to` that is not too long.
Bound: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: How many earlier evaluations the acceleration uses.
MEMORY = 6


def anderson(
    turn: Turn, bounded: Bound, start: np.ndarray, tolerance: float, patience: int
) -> tuple[np.ndarray, float, int]:
    """Anderson's acceleration (1965): the best x, its residual, and the number of evaluations.

    >>> anderson(lambda x: (np.cos(x) - x, float(abs(np.cos(x) - x)[0])), lambda a, b: b, np.ones(1), 1e-12, 50)[0]
    array([0.73908513])
    """
    states: list[np.ndarray] = []
    moves: list[np.ndarray] = []
    state = best = start
    lowest = np.inf
    for count in range(1, patience + 1):
        move, residual = turn(state)
        if residual < lowest:
            best, lowest = state, residual
        if residual < tolerance or not np.isfinite(residual):
            return best, lowest, count
        states, moves = [*states[-MEMORY:], state], [*moves[-MEMORY:], move]
        new = state + move
        if len(states) > 1:
            dx, df = np.diff(np.stack(states), axis=0).T, np.diff(np.stack(moves), axis=0).T
            new = new - (dx + df) @ np.linalg.lstsq(df, move, rcond=1e-10)[0]
        state = bounded(state, new)
    return best, lowest, patience


def newton(
    turn: Turn, bounded: Bound, start: np.ndarray, tolerance: float, patience: int
) -> tuple[np.ndarray, float, int]:
    """Newton's method with finite differences and a line search; like `anderson`, but slower and more robust.

    >>> newton(lambda x: (np.cos(x) - x, float(abs(np.cos(x) - x)[0])), lambda a, b: b, np.ones(1), 1e-12, 50)[0]
    array([0.73908513])
    """
    state = start
    move, residual = turn(state)
    count = 1
    for _ in range(patience):
        if residual < tolerance or not np.isfinite(residual):
            break
        jacobian = np.empty((len(state), len(state)))
        for j, width in enumerate(1e-7 * np.maximum(1e-3, np.abs(state))):
            probe = state.copy()
            probe[j] += width
            jacobian[:, j] = (turn(probe)[0] - move) / width
        count += len(state)
        step = np.linalg.lstsq(jacobian, -move, rcond=1e-14)[0]
        for _ in range(12):
            new = bounded(state, state + step)
            moved, found = turn(new)
            count += 1
            if found < residual:
                break
            step = 0.4 * step
        else:
            break
        state, move, residual = new, moved, found
    return state, residual, count


#: The residual at which a fixed point counts as found.
TOLERANCE = 1e-10
#: How many steps a search may take.
PATIENCE = 40
#: If a finer quadrature changes the averages by more than this, it is used.
QUADRATURE = 1e-8
#: Extra ridges for hard problems, strongest first, in units of the pull of the data; they are then reduced to zero.
WALK = 10.0 ** -np.arange(0.0, 10.5, 0.5)
_SMALLEST = 1e-250
_LOWEST = float(np.log(_SMALLEST)) + 1.0


@dataclass(frozen=True)
class Solution:
    """The overlaps of each group with its own student, the overlaps between students, and the residual.

    M, R, Q, bias, V, training_loss: per group; students: (K, K) overlaps of the students; state: where a search at a
    neighbouring grid point may start.
    """

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    bias: np.ndarray
    V: np.ndarray
    students: np.ndarray
    training_loss: np.ndarray
    state: np.ndarray
    residual: float
    evaluations: int


def solve(loss: Loss, point: ProblemArrays, start: np.ndarray | None = None) -> Solution:
    """Return the fixed point, or the best approximation found: the caller checks `residual`.

    It searches from `start`, then from a first guess. If both fail, it starts from a strong ridge, which is then
    reduced.
    """
    if start is not None:
        found = _refined(loss, point, start)
        if found.residual < TOLERANCE:
            return found
    found = _refined(loss, point, first_guess(loss, point))
    if found.residual < TOLERANCE:
        return found
    weakest = float(np.linalg.eigvalsh(point.precision)[0])
    strongest = point.samples * float(point.p @ (point.D * point.s.mean(1)))
    state = None
    for factor in strongest * WALK:
        if factor < 0.1 * weakest:
            break
        easier = replace(point, precision=point.precision + factor * np.eye(point.students))
        step, residual, _ = _search(loss, easier, first_guess(loss, easier) if state is None else state, 1)
        if residual < 1e-4:
            state = step
    for last in (found.state if state is None else state, _settled(loss, point, found.state)):
        walked = _refined(loss, point, last, settle=last is not state)
        if walked.residual < TOLERANCE:
            return walked
        found = min(found, walked, key=lambda one: one.residual)
    return found


def _refined(loss: Loss, point: ProblemArrays, state: np.ndarray, settle: bool = False) -> Solution:
    """Search with a quadrature that is refined until the result no longer changes."""
    fineness, used = 1, 0
    while True:
        state, residual, count = _search(loss, point, state, fineness, settle)
        used += count
        # At a fixed point the finer quadrature returns the same state if the coarser one was fine enough.
        image, found, V = _conjugate(loss, point, state, 2 * fineness)
        if fineness >= 16 or not residual < TOLERANCE or _distance(point, V, state, image, state) < QUADRATURE:
            break
        fineness *= 2
    M, R, Q, bias, V, students = _overlaps(point, state)
    return Solution(M, R, Q, bias, V, students, found.training_loss, state, residual, used)


def first_guess(loss: Loss, point: ProblemArrays) -> np.ndarray:
    """Return the conjugate parameters for a student of length zero."""
    number, students = point.groups, point.students
    y = np.array([1.0, -1.0])
    zero = np.zeros((number, 2))
    force = np.abs(point.s * loss.gradient(zero, y[None, :])).mean(1)
    curve = np.maximum((point.s * loss.curvature(zero, y[None, :])).mean(1), 0.2 * force)
    lam, chi = np.zeros(students), np.zeros(students)
    np.add.at(lam, point.student, point.samples * point.p * point.D * curve)
    np.add.at(chi, point.student, point.samples * point.p * point.D * force**2)
    turn = point.samples * point.p * np.sqrt(point.D) * force * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * point.a**2)
    return _pack(lam, chi, np.zeros(number), turn, np.zeros(students))


def _pack(lam: np.ndarray, chi: np.ndarray, means: np.ndarray, teachers: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return np.concatenate(
        [np.log(np.maximum(lam, _SMALLEST)), np.log(np.maximum(chi, _SMALLEST)), means, teachers, bias]
    )


def _unpack(point: ProblemArrays, state: np.ndarray) -> tuple[np.ndarray, ...]:
    k, g = point.students, point.groups
    edges = 0, k, 2 * k, 2 * k + g, 2 * k + 2 * g, len(state)
    return tuple(state[start:stop] for start, stop in pairwise(edges))


def _overlaps(point: ProblemArrays, state: np.ndarray) -> tuple[np.ndarray, ...]:
    """M, R, Q, bias, V per group and the overlaps between students, from conjugate parameters."""
    log_lam, log_chi, means, teachers, bias = _unpack(point, state)
    number, own, rows = point.groups, point.student, np.arange(point.groups)
    stiffness = point.precision + np.diag(np.exp(log_lam))
    K = 1.0 / stiffness if point.students == 1 else np.linalg.inv(stiffness)
    H = np.zeros((point.students, 2 * number))
    H[own, rows], H[own, number + rows] = means, teachers
    pulled = K @ H
    overlaps = pulled @ point.gram
    students = overlaps @ pulled.T + (K * np.exp(log_chi)) @ K
    V = point.D * K[own, own]
    Q = np.maximum(students[own, own], 0.0)
    return overlaps[own, rows], overlaps[own, number + rows], Q, bias[own], V, students


def _conjugate(
    loss: Loss, point: ProblemArrays, state: np.ndarray, fineness: int
) -> tuple[np.ndarray, Averages, np.ndarray]:
    """Return one iteration of the fixed-point map, its averages, and V."""
    M, R, Q, bias, V, _ = _overlaps(point, state)
    found = averages(loss, point, M, R, Q, bias, V, fineness)
    share = point.samples * point.p
    give = -share * found.slope
    belongs = point.student[:, None] == np.arange(point.students)
    lam, chi, pull, give = np.array([give * point.D, share * point.D * found.square, share * found.f, give]) @ belongs
    offsets = state[-point.students :]
    if point.bias:
        offsets = offsets + np.clip(pull / np.maximum(give, 1e-12 * np.abs(pull) + _SMALLEST), -5.0, 5.0)
    return _pack(lam, chi, share * found.f, share * np.sqrt(point.D) * found.turn, offsets), found, V


def _settled(loss: Loss, point: ProblemArrays, state: np.ndarray, fineness: int = 1) -> np.ndarray:
    """Return the same state with the bias at which the forces on it cancel, by bisection."""
    if not point.bias:
        return state
    M, R, Q, _, V, _ = _overlaps(point, state)
    k, own = point.students, point.student

    def pull(offsets: np.ndarray) -> np.ndarray:
        total = np.zeros(k)
        np.add.at(total, own, point.p * averages(loss, point, M, R, Q, offsets[own], V, fineness).f)
        return total

    low, high, width = state[-k:] - 0.1, state[-k:] + 0.1, 0.1
    while width < 1e3 and not ((pull(low) >= 0).all() and (pull(high) <= 0).all()):
        width *= 2.0
        low, high = np.where(pull(low) >= 0, low, low - width), np.where(pull(high) <= 0, high, high + width)
    for _ in range(50):
        middle = 0.5 * (low + high)
        up = pull(middle) > 0
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return np.concatenate([state[:-k], 0.5 * (low + high)])


def _distance(point: ProblemArrays, V: np.ndarray, at: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two states near `at`, with pulls scaled by their effect on the student."""
    k, g = point.students, point.groups
    reach = V / point.D
    gap = np.abs(one - other)
    gap[: 2 * k] *= at[: 2 * k] > _LOWEST
    gap[2 * k : 2 * k + g] *= reach
    gap[2 * k + g : -k] *= reach
    gap[-k:] /= np.maximum(1.0, np.abs(at[-k:]))
    largest = float(gap.max())
    return largest if np.isfinite(largest) else np.inf


def _search(
    loss: Loss, point: ProblemArrays, state: np.ndarray, fineness: int, settle: bool = False
) -> tuple[np.ndarray, float, int]:
    """Search by accelerated iteration, which is cheap, then by Newton's method from the best state if necessary.

    `settle` solves for the bias at every iteration, for scores so narrow that the iteration would be unstable
    otherwise.
    """

    def turn(x: np.ndarray) -> tuple[np.ndarray, float]:
        image, _, V = _conjugate(loss, point, _settled(loss, point, x, fineness) if settle else x, fineness)
        return image - x, _distance(point, V, x, image, x)

    def bounded(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """No step changes the logarithms of Lam and chi by more than 2."""
        size = float(np.abs(new - old)[: 2 * point.students].max())
        return new if size <= 2.0 else old + (2.0 / size) * (new - old)

    state, residual, count = anderson(turn, bounded, state, TOLERANCE, PATIENCE)
    if residual < TOLERANCE or settle:
        return state, residual, count
    state, residual, more = newton(turn, bounded, state, TOLERANCE, PATIENCE)
    return state, residual, count + more
