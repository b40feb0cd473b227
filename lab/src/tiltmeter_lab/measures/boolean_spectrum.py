"""boolean-spectrum: the Walsh-Hadamard transform of the decision: noise stability, influences, weight by degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.boolean import Majority, boolean_data
from tiltmeter_lab.measures.shared.boolean_cube import EXACT_BITS, boolean_cube


@dataclass(frozen=True)
class BooleanSpectrum:
    """Fourier weights f_S^2 of the decision as +-1 (or of the score, with `decided=False`), summed in three ways.

    >>> weights = walsh_hadamard(np.array([1.0, -1.0, -1.0, 1.0])) ** 2  # parity of two bits: all weight on both
    >>> weights.tolist()
    [0.0, 0.0, 0.0, 1.0]

    `noise_stability` at rho is sum rho^size(S) f_S^2: the correlation of f at x and at a copy whose bits are redrawn
    with probability 1 - rho. `influence` of bit i sums the sets S that contain i; for a decision it is the share of
    points where flipping the bit changes the decision. `degree_weight` sums by the size of S: with a low-degree bias,
    the weight is at small sizes first and moves up during training. All weights are divided by their sum, so that the
    scale of a score does not matter. The null values are those of a random function with the same weight on the empty
    set.

    What it does not mean: a large weight on low degrees does not mean that training *chose* a low-degree function:
    compare with the value at initialisation. For 0/1 labels the decision still counts as -1 and +1.

    Args:
        rho: Correlations at which the noise stability is given.
        decided: Whether it is about the decision as -1 and +1; otherwise about the score.
    """

    rho: tuple[float, ...] = (0.8,)
    decided: bool = True
    title: ClassVar[str] = "Noise stability, influences and degrees of the decision as a function of bits"
    takes: ClassVar[str] = f"Points whose features have two values, at most {EXACT_BITS} bits, and two labels"
    exact: ClassVar[str] = "Always: the model is evaluated on the whole cube"
    absent: ClassVar[str] = "If a target of high degree, such as a parity, is learned: the weight ends up there"

    def __post_init__(self) -> None:
        if not self.rho or not all(0 <= value <= 1 for value in self.rho):
            raise ValueError(f"`rho` should contain correlations from 0 to 1. Found rho = {self.rho}.")

    @classmethod
    def example(cls, seed: int) -> tuple[Self, torch.nn.Module, GroupedData]:  # noqa: ARG003
        """The majority of seven bits, and a network that has not learned it yet."""
        return cls(), mlp(7, (16,), 1), boolean_data(Majority(), 7)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        cube = boolean_cube(snapshot)
        if snapshot.task.outputs > 1:
            raise ValueError(
                f"A Boolean spectrum needs a single output. Found {snapshot.task.outputs} outputs: read one of "
                "them with read=."
            )
        score = cube.every()
        if self.decided:
            values = np.where(cube.seen.decide(score) == snapshot.task.positive, 1.0, -1.0)
        else:
            values = score[:, 0].double().cpu().numpy()
        weights = walsh_hadamard(values) ** 2
        total = weights.sum()
        weights = weights / total if total > 0 else weights
        n = cube.bits
        even = np.full(len(weights), (weights.sum() - weights[0]) / (len(weights) - 1))
        even[0] = weights[0]
        found = {}
        for end, part in (("", weights), ("_null", even)):
            note = ", for a random function" if end else ""
            for name, numbers, coords, meaning in (
                ("noise_stability", noise_stability(part, self.rho), {"rho": np.asarray(self.rho)}, "stability"),
                ("influence", influences(part), {"bit": np.arange(n)}, "weight of the sets that contain this bit"),
                ("degree_weight", degree_weights(part), {"degree": np.arange(n + 1)}, "weight of sets of this size"),
            ):
                found[name + end] = snapshot.reading(
                    name + end, numbers, coords, long_name=meaning + note, better="neither"
                )
        return found

    def passes(self, snapshot: Snapshot) -> float:
        return float(2 ** int(np.prod(snapshot.model.x.shape[1:]))) / len(snapshot.data)


def walsh_hadamard(values: np.ndarray) -> np.ndarray:
    """Coefficients f_S = E_x f(x) prod_{i in S} x_i; index S has binary digit i if S contains i. Takes n 2^n
    operations.

    Entry k of `values` belongs to the point whose bit i is +1 if binary digit i of k is 1.
    """
    found = np.asarray(values, dtype=float)
    bits = int(np.log2(len(found)))
    if 2**bits != len(found):
        raise ValueError(f"A function of bits should have 2^n values. Found {len(found)}.")
    for bit in range(bits):
        low, high = found.reshape(-1, 2, 2**bit).transpose(1, 0, 2)
        found = np.stack([(low + high) / 2.0, (high - low) / 2.0], axis=1).reshape(-1)
    return found


def set_sizes(count: int) -> np.ndarray:
    """The number of bits in each of the 2^n sets."""
    return np.bitwise_count(np.arange(count)).astype(np.int64)


def noise_stability(weights: np.ndarray, rho: tuple[float, ...]) -> np.ndarray:
    """sum_S rho^size(S) f_S^2 for each rho.

    >>> noise_stability(np.array([0.0, 0.0, 0.0, 1.0]), (0.8,)).round(2).tolist()
    [0.64]
    """
    return np.array([float(np.sum(value ** set_sizes(len(weights)) * weights)) for value in rho])


def influences(weights: np.ndarray) -> np.ndarray:
    """For each bit, the sum of f_S^2 over the sets that contain it; their sum is the total influence."""
    every = np.arange(len(weights))
    return np.array([weights[(every >> bit) & 1 == 1].sum() for bit in range(int(np.log2(len(weights))))])


def degree_weights(weights: np.ndarray) -> np.ndarray:
    """The sum of f_S^2 over the sets of each size, 0 to n; for equal weights it is binomial.

    >>> degree_weights(np.full(8, 1 / 8)).tolist()
    [0.125, 0.375, 0.375, 0.125]
    """
    return np.bincount(set_sizes(len(weights)), weights)
