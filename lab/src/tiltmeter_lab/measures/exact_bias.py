"""exact-bias: bits of inductive bias, from the share of random models that do as well before any training."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from scipy.stats import binom
from torch import nn

from tiltmeter.measures.snapshot import Snapshot


@dataclass(frozen=True)
class ExactBias:
    """-log2 of the probability that a random model of this architecture has an error of at most eps on the points.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> from tiltmeter.data.public.digits import digits
    >>> found = lab.measure(ExactBias(draws=20, targets=(0.9, 0.5)), torch.nn.Linear(64, 10), digits()[1])["bias_bits"]
    >>> found.target.values.tolist(), bool(found[0] < found[1])
    (['0.9', '0.5', 'model'], True)

    This is the number of bits of information needed to choose such a model, in addition to the architecture and its
    initialisation (Boopathy et al., 2024; here by counting instead of extrapolating). `draws` models are initialised
    with `reset_parameters`; parameters without such a method are drawn from a normal distribution at their present
    scale.

    - `bias_bits` (target: the errors in `targets`, then "model", the error of the model itself); null value: the exact
      number of bits for random labels, which no architecture favours;
    - `bias_bits_se`: its standard error; NaN if no draw did as well, and then the bits are a lower bound, log2(draws);
    - `bias_bits_short`: the null value minus the bits, the information that the architecture provides; null value 0;
      NaN if the bits are only a bound.

    What it does not mean: more than about log2(draws) bits cannot be counted. Nothing is extrapolated, because fitting
    a distribution to the tail is wrong by half a bit even in the easiest case. Random models are not required to fit
    training data first, so these are bits for the whole task, not for what training leaves open.

    Args:
        draws: Random models that are counted.
        targets: Errors that a random model should reach.
        seed: Seed of the random models.
    """

    draws: int = 256
    targets: tuple[float, ...] = (0.5, 0.2, 0.1)
    seed: int = 0

    title: ClassVar[str] = "Bits of inductive bias: how rare random models with so low an error are"
    takes: ClassVar[str] = "a model that decides between labels and whose layers can be initialised again"
    exact: ClassVar[str] = "in the limit of many draws; -log2 eps for linear classifiers in the plane"
    absent: ClassVar[str] = "an architecture no better than random labels: as many bits as the null value"

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ValueError(f"`draws` should be at least 1. Found draws = {self.draws}.")
        if not all(0 <= target <= 1 for target in self.targets):
            raise ValueError(f"`targets` should be shares between 0 and 1. Found targets = {self.targets}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if snapshot.decision is None:
            raise ValueError("Bits of inductive bias need decisions between labels. Found a regression.")
        own = float(np.mean(snapshot.decision != snapshot.data.y))
        targets = np.array([*self.targets, own])
        bits, error = bias_bits(self.errors(snapshot), targets)
        count, points = len(snapshot.task.labels), len(snapshot.data)
        # Rounded down to a multiple of 1/n.
        null = -binom.logcdf(np.floor(targets * points + 1e-9), points, 1.0 - 1.0 / count) / np.log(2.0)
        names = np.array([f"{target:g}" for target in self.targets] + ["model"], dtype=object)
        coords = {"target": names}
        text = "bits to choose a model with this error"
        return {
            "bias_bits": snapshot.reading("bias_bits", bits, coords, long_name=text, better="neither"),
            "bias_bits_se": snapshot.reading("bias_bits_se", error, coords, long_name="its standard error"),
            "bias_bits_null": snapshot.reading(
                "bias_bits_null", null, coords, long_name="bits to choose labels with this error", better="neither"
            ),
            "bias_bits_short": snapshot.reading(
                "bias_bits_short",
                np.where(np.isnan(error), np.nan, null - bits),
                coords,
                long_name="bits that the architecture gives",
                better="neither",
                null="0: no better than random labels",
            ),
        }

    def errors(self, snapshot: Snapshot) -> np.ndarray:
        """The share of wrong decisions of every random model."""
        seen, found = snapshot.model, np.zeros(self.draws)
        drawn = type(seen)(copy.deepcopy(seen.module), seen.task, seen.loss, seen.x, seen.y, seen.read, seen.chunk)
        torch.manual_seed(self.seed)  # the random streams are restored after the observation
        for draw in range(self.draws):
            start_anew(drawn.module, seen.module)
            found[draw] = np.mean(seen.decide(drawn.scores(seen.x)) != snapshot.data.y)
        return found

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One for every draw."""
        return float(self.draws)


def bias_bits(errors: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-log2 of the share of errors at or below each target, and its standard error (NaN if there are none: a bound).

    >>> bits, _ = bias_bits(np.linspace(0.0, 1.0, 1001)[1:], np.array([0.5, 0.125]))
    >>> bits.tolist()
    [1.0, 3.0]
    """
    hits = (errors[None, :] <= targets[:, None]).sum(1)
    share = np.maximum(hits, 1) / len(errors)
    error = np.sqrt((1.0 - share) / np.maximum(hits, 1)) / np.log(2.0)
    return -np.log2(share), np.where(hits > 0, error, np.nan)


def start_anew(module: nn.Module, like: nn.Module) -> None:
    """Draw every parameter again, by its layer's own rule, or from a normal distribution at the scale that it has in
    `like`.
    """
    done: set[int] = set()
    with torch.no_grad():
        for part in module.modules():
            reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            if callable(reset):
                reset()
                done |= {id(parameter) for parameter in part.parameters(recurse=False)}
        for (_, parameter), (_, present) in zip(module.named_parameters(), like.named_parameters(), strict=True):
            if id(parameter) not in done and parameter.is_floating_point():
                parameter.normal_(0.0, float(present.double().square().mean().sqrt()) or 1.0)
