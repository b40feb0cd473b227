"""boolean-sensitivity: how often one flipped bit changes the decision (Bhattamishra et al., ACL 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.boolean import Parity, boolean_data
from tiltmeter_lab.measures.shared.boolean_cube import EXACT_BITS, TOGETHER, BooleanCube, boolean_cube


@dataclass(frozen=True)
class BooleanSensitivity:
    """The share of (point, bit) pairs where flipping the bit changes the decision, over the whole cube, not only the
    data.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(8, 1, bias=False)
    >>> model.weight.data = torch.eye(8)[2:3]
    >>> found = lab.measure(BooleanSensitivity(), model, boolean_data(Parity((2,)), n=8))
    >>> float(found["boolean_sensitivity"])  # the decision is one bit of eight
    0.125

    S = E_x (1/n) #{i: f(x) != f(x with bit i flipped)}. A constant has S = 0 and a parity of k bits has k/n. The null
    value is that of a random function with the same shares of decisions. With more than 16 bits S is estimated from
    `samples` random strings.

    What it does not mean: a low value alone does not mean that the model is simple. A model that nearly always makes
    the same decision has a low S and a low null value, so compare with `majority_share`. S does not say whether the
    decisions are right, and it concerns random strings, which may be unlike the data.

    Args:
        samples: Random strings that are tried with more than 16 bits.
        seed: Seed of the random draws, the same at every evaluation.
    """

    samples: int = 1000
    seed: int = 0
    title: ClassVar[str] = "How often one flipped bit changes the decision"
    takes: ClassVar[str] = "Points whose features have two values (bits or two tokens), and labels"
    exact: ClassVar[str] = f"Up to {EXACT_BITS} bits, on the whole cube; with more bits sampled, with a standard error"
    absent: ClassVar[str] = "Label noise that is fitted: sensitivity rises above that of the clean function"

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise ValueError(f"`samples` should be at least 2. Found samples = {self.samples}.")

    @classmethod
    def example(cls, seed: int) -> tuple[Self, torch.nn.Module, GroupedData]:
        """A parity of two out of eight bits, and a network that has not learned it yet."""
        return cls(seed=seed), mlp(8, (16,), 1), boolean_data(Parity((0, 1)), 8)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        cube = boolean_cube(snapshot)
        if cube.bits <= EXACT_BITS:
            decision = cube.seen.decide(cube.every())
            flips, error = flip_shares(decision), 0.0
        else:
            decision, flips, error = self._sampled(cube)
        counts = np.unique(decision, return_counts=True)[1] / len(decision)
        bits = np.arange(cube.bits)
        null = "0.5 for a random function with balanced decisions"
        return {
            "boolean_sensitivity": _scalar(
                snapshot, "boolean_sensitivity", flips.mean(), "share of single flips that change the decision"
            ),
            "boolean_sensitivity_se": _scalar(snapshot, "boolean_sensitivity_se", error, "its standard error"),
            "boolean_sensitivity_null": _scalar(
                snapshot,
                "boolean_sensitivity_null",
                1.0 - (counts**2).sum(),
                "sensitivity of a random function with the same shares of decisions",
            ),
            "bit_sensitivity": snapshot.reading(
                "bit_sensitivity",
                flips,
                {"bit": bits},
                long_name="share of points whose decision changes with this bit",
                better="neither",
                null=null,
            ),
            "majority_share": _scalar(
                snapshot,
                "majority_share",
                counts.max(),
                "share of the most frequent decision",
                null="one over the number of labels; 1 for a constant, whose sensitivity is 0",
            ),
        }

    def _sampled(self, cube: BooleanCube) -> tuple[np.ndarray, np.ndarray, float]:
        """Decisions on random strings, the effect of flipping each bit, and the standard error of their mean over
        strings.
        """
        stream = torch.Generator().manual_seed(self.seed)
        strings = torch.rand(self.samples, cube.bits, generator=stream) < 0.5
        decision = cube.seen.decide(cube.scores(strings))
        flipped = np.empty((self.samples, cube.bits), dtype=bool)
        block = max(1, 16 * TOGETHER // cube.bits)
        single = torch.eye(cube.bits, dtype=torch.bool)
        for start in range(0, self.samples, block):
            part = strings[start : start + block]
            changed = cube.seen.decide(cube.scores((part[:, None] ^ single).reshape(-1, cube.bits)))
            flipped[start : start + block] = changed.reshape(len(part), -1) != decision[start : start + block, None]
        each = flipped.mean(1)
        return decision, flipped.mean(0), float(each.std(ddof=1) / np.sqrt(self.samples))

    def passes(self, snapshot: Snapshot) -> float:
        bits = int(np.prod(snapshot.model.x.shape[1:]))
        return float(2**bits if bits <= EXACT_BITS else self.samples * (bits + 1)) / len(snapshot.data)


def flip_shares(decision: np.ndarray) -> np.ndarray:
    """For each bit, the share of the cube where flipping it changes the decision; their mean is the sensitivity.

    >>> flip_shares(np.array([0, 1, 1, 0])).tolist()  # parity of two bits
    [1.0, 1.0]
    """
    bits = int(np.log2(len(decision)))
    if 2**bits != len(decision):
        raise ValueError(f"A function of bits should have 2^n decisions. Found {len(decision)}.")
    every = np.arange(len(decision))
    return np.array([np.mean(decision != decision[every ^ (1 << bit)]) for bit in range(bits)])


def _scalar(snapshot: Snapshot, name: str, value: Any, meaning: str, **attrs: str) -> xr.DataArray:
    return snapshot.reading(name, np.asarray(float(value)), {}, long_name=meaning, better="neither", **attrs)
