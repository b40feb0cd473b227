"""Square: the squared loss in the kernel, by Lanczos or by all modes, and how modes respond to gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tiltmeter.recipe.plain_sgd import PlainSGD


def responses(
    curvatures: np.ndarray, optimiser: PlainSGD, evaluations: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the response of each mode to a unit pull, at the steps `evaluations`: arrays (evaluations, modes).

    >>> one, _ = responses(np.array([2.0]), PlainSGD(lr=0.1, steps=10), np.array([0, 1, 10]))
    >>> (-one[:, 0]).round(4).tolist(), round((1 - 0.8**10) / 2, 4)
    ([0.0, 0.1, 0.4463], 0.4463)

    The first array is for a constant pull; the second (None without weight decay) for the pull of the shrinking initial
    weights. Both follow the exact updates of torch.optim.SGD on the linearised model, averaged over batches. They
    differ from the gradient flow when lr times curvature is not small.
    """
    if optimiser.plain:
        return -_closed(curvatures, float(optimiser.lr), evaluations), None
    return _recursion(curvatures, optimiser, evaluations)


def flow_responses(curvatures: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The same for the gradient flow at these times, -(1 - exp(-curvature time)) / curvature."""
    product = np.outer(times, curvatures)
    small = np.abs(product) < 1e-12
    exact = np.expm1(-product) / np.where(curvatures == 0, 1.0, curvatures)
    return np.where(small, -times[:, None], exact)


def _closed(curvatures: np.ndarray, lr: float, evaluations: np.ndarray) -> np.ndarray:
    """Return (1 - (1 - lr c)^step) / c without cancellation, also where c is nearly 0 or lr c exceeds 1."""
    x = lr * curvatures
    calm = np.abs(x) < 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        gone = -np.expm1(np.outer(evaluations, np.log1p(np.where(calm, -x, 0.0))))
        wild = 1.0 - np.power.outer(np.where(calm, 0.0, 1.0 - x), evaluations).T
    still = np.abs(x) * max(1, int(evaluations.max(initial=0))) < 1e-14
    moved = np.where(calm, gone, wild) / np.where(still, 1.0, curvatures)
    return np.where(still, lr * evaluations[:, None], moved)


def _recursion(
    curvatures: np.ndarray, optimiser: PlainSGD, evaluations: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the responses step by step: momentum, weight decay and schedules have no closed form."""
    momentum, decay = optimiser.momentum, optimiser.weight_decay
    stiffness = curvatures + decay
    # Row 0 is for the constant pull, row 1 for the shrinking initial weights.
    rows = 2 if decay else 1
    place, speed = np.zeros((rows, len(curvatures))), np.zeros((rows, len(curvatures)))
    pull = np.ones((rows, 1))
    kept, kept_speed = 1.0, 0.0  # the factor on the initial weights
    found = np.zeros((len(evaluations), rows, len(curvatures)))
    wanted = {int(step): row for row, step in enumerate(evaluations)}
    with np.errstate(over="ignore", invalid="ignore"):
        for step, lr in enumerate(optimiser.rates()):
            if rows == 2:
                pull[1] = kept - 1.0
            speed *= momentum
            speed += pull + stiffness * place
            place -= lr * speed
            if decay:
                kept_speed = momentum * kept_speed + decay * kept
                kept -= lr * kept_speed
            if step + 1 in wanted:
                found[wanted[step + 1]] = place
    return found[:, 0], found[:, 1] if rows == 2 else None


def kept_weights(optimiser: PlainSGD, evaluations: np.ndarray) -> np.ndarray:
    """The factor by which weight decay alone has shrunk the initial weights by these steps."""
    kept, speed = 1.0, 0.0
    course = [kept]
    for lr in optimiser.rates():
        speed = optimiser.momentum * speed + optimiser.weight_decay * kept
        kept -= lr * speed
        course.append(kept)
    return np.asarray([course[step] for step in evaluations.tolist()])


@dataclass(frozen=True)
class LinearisedOutputs:
    """Outputs at the held-out points, (steps, rows, columns), and what is known about the calculation.

    `error` estimates the root mean square error of the calculation at the sample, in units of the outputs. `sharpest`
    is (a bound on) the largest curvature of the loss. `pull` (steps, groups) is what every group counts under an
    intervention of groups.
    """

    outputs: np.ndarray
    error: float
    sharpest: float
    method: str
    pull: np.ndarray | None = None


Product = Callable[[np.ndarray], np.ndarray]

#: Directions shorter than this, relative to the largest product seen, are rounding errors.
NOTHING = 1e-13
#: Passes over the matrix between two checks whether to stop.
ASKED = 4


@dataclass(frozen=True)
class Krylov:
    """An orthonormal `basis` (size, m) and the matrix restricted to it, `inside` (m, m).

    With A the matrix, A basis = basis inside + beyond outside: A maps only the last block of basis vectors out of the
    space, into the directions `beyond` (size, k) with the factor `outside` (k, last block). Both are empty when the
    space is invariant; then functions of A are exact in it. `start` holds the coefficients of the first vectors.
    """

    basis: np.ndarray
    inside: np.ndarray
    start: np.ndarray
    beyond: np.ndarray
    outside: np.ndarray
    passes: int

    def modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvalues and eigenvectors of the matrix inside."""
        values, vectors = np.linalg.eigh(self.inside)
        return values, vectors

    def image(self) -> np.ndarray:
        """A basis."""
        found: np.ndarray = self.basis @ self.inside
        if self.beyond.shape[1]:
            found[:, -self.outside.shape[1] :] += self.beyond @ self.outside
        return found

    def leak(self, coefficients: np.ndarray) -> float:
        """The length of A v outside the space, for the vectors v = basis @ coefficients (largest over vectors)."""
        if not np.isfinite(coefficients).all():
            return np.inf
        with np.errstate(over="ignore", invalid="ignore"):  # it grows without bound if gradient descent diverges
            lost = np.tensordot(self.outside, coefficients[-self.outside.shape[1] :], axes=1)
            return float(np.linalg.norm(lost, axis=0).max(initial=0.0))


def lanczos(product: Product, start: np.ndarray, stop: Callable[[Krylov], bool], largest: int | None = None) -> Krylov:
    """Grow the space spanned by start, A start, A^2 start, ... until `stop` returns True.

    >>> matrix = np.diag([1.0, 2.0, 5.0])
    >>> space = lanczos(lambda v: matrix @ v, np.ones((3, 1)), lambda krylov: False)
    >>> space.modes()[0].round(12).tolist()
    [1.0, 2.0, 5.0]

    This is the block Lanczos method. Every new block is orthogonalised twice against all previous ones, so that
    eigenvalues are not duplicated. Directions already in the space are dropped, so a matrix of low rank ends it early.
    """
    size = len(start)
    largest = size if largest is None else min(largest, size)
    block, _ = _fresh(np.empty((size, 0)), start, float(np.sqrt((start**2).sum(0)).max(initial=0.0)))
    basis = np.empty((size, max(block.shape[1], 1) * 8))
    inside = np.zeros((0, 0))
    used, passes, scale = 0, 0, 0.0
    while True:
        width = block.shape[1]
        if used + width > basis.shape[1]:
            basis = np.concatenate([basis, np.empty_like(basis)], 1)
        basis[:, used : used + width] = block
        used += width
        image = product(block)
        passes += 1
        scale = max(scale, float(np.sqrt((image**2).sum(0)).max(initial=0.0)))
        known = basis[:, :used]
        column = known.T @ image
        wider = np.zeros((used, used))
        wider[: used - width, : used - width] = inside
        wider[:, used - width :] = column
        wider[used - width :, :] = column.T
        inside = wider
        block, factor = _fresh(known, image, scale)
        krylov = Krylov(known, (inside + inside.T) / 2, known.T @ start, block, factor, passes)
        if not block.shape[1] or used >= largest or (passes % ASKED == 0 and stop(krylov)):
            return krylov


def _fresh(known: np.ndarray, vectors: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The new directions among these vectors, orthonormal, and the factor with vectors = known part + new @ factor."""
    rest = vectors - known @ (known.T @ vectors)
    rest -= known @ (known.T @ rest)
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    kept = sizes > NOTHING * max(scale, np.finfo(float).tiny) * np.sqrt(len(vectors))
    fresh = left[:, kept]
    if fresh.shape[1]:
        # Short remainders are mostly rounding errors of the long part: orthogonalise a second time.
        fresh = np.linalg.qr(fresh - known @ (known.T @ fresh))[0]
    return fresh, fresh.T @ rest


#: Lanczos stops at this error of the sample's outputs, relative to their root mean square distance from the labels.
TOLERANCE = 1e-9


def square_course(
    kernel: np.ndarray,
    cross: np.ndarray,
    distance: np.ndarray,
    start: np.ndarray,
    share: np.ndarray,
    optimiser: PlainSGD,
    evaluations: np.ndarray,
    radial: tuple[np.ndarray, np.ndarray] | None = None,
) -> LinearisedOutputs:
    """Return the outputs of the linearised network after gradient descent on sum(share * 1/2 (f - y)^2).

    `kernel` (n, n) and `cross` (m, n) are tangent kernels; `distance` (n, columns) is f - y at the sample and `start`
    (m, columns) is f at the held-out points, both before training. With weight decay, `radial` holds J w0 at both. The
    symmetric matrix sqrt(share) K sqrt(share) has the curvatures of the loss as eigenvalues; only its products with
    vectors are used.
    """
    root = np.sqrt(share)[:, None]
    pulls = [root * distance] if radial is None else [root * distance, root * radial[0]]
    begin = np.concatenate(pulls, axis=1)
    columns = distance.shape[1]
    length = float(np.sqrt((pulls[0] ** 2).sum(0)).max(initial=0.0))
    times = optimiser.travelled(evaluations)

    def error(krylov: Krylov, moved: np.ndarray) -> float:
        # An error made at one step decays as 1 / steps, so errors of all steps add up to a logarithm.
        return krylov.leak(moved) * (1.0 + float(np.log1p(evaluations.max(initial=0))))

    def content(krylov: Krylov) -> bool:
        values, vectors = krylov.modes()
        answers = flow_responses(values, times)
        moved = _moved(vectors, [answers] * len(pulls), krylov.start, columns)
        return error(krylov, moved) <= TOLERANCE * length

    krylov = lanczos(lambda v: root * (kernel @ (root * v)), begin, content)
    values, vectors = krylov.modes()
    first, second = responses(values, optimiser, evaluations)
    moved = _moved(vectors, [first] if second is None else [first, second], krylov.start, columns)
    with np.errstate(over="ignore", invalid="ignore"):
        seen = np.tensordot(cross @ (root * krylov.basis), moved, axes=1).transpose(1, 0, 2)
        outputs = start + seen
    if radial is not None:
        outputs = outputs + (kept_weights(optimiser, evaluations) - 1.0)[:, None, None] * radial[1]
    sharpest = float(values.max(initial=0.0))
    method = f"Lanczos, {krylov.passes} passes"
    return LinearisedOutputs(outputs, error(krylov, moved), sharpest, method)


def _moved(vectors: np.ndarray, answers: list[np.ndarray], start: np.ndarray, columns: int) -> np.ndarray:
    """Coefficients in the basis at every step: (basis, steps, columns)."""
    rows = vectors.T @ start
    total = np.zeros((len(vectors), len(answers[0]), columns))
    with np.errstate(over="ignore", invalid="ignore"):
        for number, answer in enumerate(answers):
            part = rows[:, number * columns : (number + 1) * columns]
            total += answer.T[:, :, None] * part[:, None, :]
        return np.tensordot(vectors, total, axes=1)
