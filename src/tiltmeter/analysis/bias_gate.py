"""bias_gate: test whether a gap between groups is larger than allowed at the end of a run."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import xarray as xr

from tiltmeter.analysis.pairs import groups_of
from tiltmeter.record.trajectory import Trajectory

#: The scatter over seeds is used from this many seeds on.
FEWEST_SEEDS = 3
#: Sources of curves without noise.
EXACT = ("theory", "moments")


@dataclass(frozen=True)
class GapFound:
    """Value of `pair[0]` minus value of `pair[1]` at the last look, with limits that hold for all pairs together."""

    pair: tuple[Hashable, Hashable]
    gap: float
    low: float
    high: float

    @property
    def at_least(self) -> float:
        """The lower confidence limit of the size of the gap."""
        return max(self.low, -self.high, 0.0)

    @property
    def at_most(self) -> float:
        """The upper confidence limit of the size of the gap."""
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class BiasGate:
    """The result of `bias_gate`, for every pair of groups."""

    curve: str
    allowed: float
    level: float
    time: float
    clock: str
    basis: str
    gaps: tuple[GapFound, ...]

    @property
    def shown(self) -> tuple[GapFound, ...]:
        """Pairs whose gap is shown to be larger than allowed, the largest first."""
        return tuple(sorted((g for g in self.gaps if g.at_least > self.allowed), key=lambda g: -g.at_least))

    @property
    def passed(self) -> bool:
        return not self.shown

    def __str__(self) -> str:
        where = f"{self.curve} at {self.clock} {self.time:.6g}"
        if self.shown:
            said = [f"{_pair(g)}: {g.gap:+.4f}, between {g.low:.4f} and {g.high:.4f}" for g in self.shown]
            return f"Shown: a gap in {where} above {self.allowed:g}. {'; '.join(said)} ({self._how()})."
        worst = max(self.gaps, key=lambda g: g.at_most)
        if worst.at_most <= self.allowed:
            return f"Ruled out: no gap in {where} is above {self.allowed:g} ({self._how()})."
        return (
            f"Not shown: a gap in {where} above {self.allowed:g}. It could be up to {worst.at_most:.4f}, for "
            f"{_pair(worst)} ({self._how()})."
        )

    def _how(self) -> str:
        return self.basis if self.basis == "exact values" else f"{self.basis}, all pairs together at {self.level:.0%}"


def bias_gate(trajectory: Trajectory, curve: str, allowed: float, level: float = 0.05) -> BiasGate:
    """Test whether the gap between any two groups in `curve` at the last look is larger than `allowed`.

    >>> from tiltmeter import predict
    >>> from tiltmeter.problem import cases
    >>> print(bias_gate(predict(*cases.centred_crossing(), curves=("loss",)), "loss", 0.05))
    Shown: a gap in loss at t 200 above 0.05. + and -: -0.2077, between -0.2077 and -0.2077 (exact values).

    Limits come from the recorded standard errors `<curve>_se`, or from the scatter over at least three seeds, with
    Bonferroni's correction over the pairs. "Not shown" does not mean that there is no such gap: more points or seeds
    may be needed to show it. The limits are for the last look only; a look chosen because of its gap would need wider
    limits.
    """
    if not 0 < level < 1:
        raise ValueError(f"`level` should lie strictly between 0 and 1. Found level = {level}.")
    if not 0 <= allowed < math.inf:
        raise ValueError(f"`gap` should not be negative. Found gap = {allowed}.")
    values = trajectory[curve]
    extra = [str(dim) for dim in values.dims if dim not in ("time", "group", "seed")]
    if "group" not in values.dims or values.sizes["group"] < 2 or extra:
        over = f"dimensions {', '.join(map(str, values.dims))}"
        raise ValueError(f"A gate needs a curve of at least two groups over time. Found {curve!r} with {over}.")
    if not values.sizes["time"]:
        raise ValueError(f"A gate needs at least one look. Found none in {curve!r}.")
    if trajectory.diverged is not None:
        raise ValueError("A run that diverged has no trained model to judge.")
    last = values.isel(time=-1)
    groups = tuple(groups_of(values))
    pairs = list(combinations(range(len(groups)), 2))
    middle, margin, basis = _limits(trajectory, curve, last, pairs, level)
    if not np.isfinite(middle).all():
        empty = [str(g) for g in groups if not np.isfinite(last.sel(group=g)).all()]
        raise ValueError(
            f"Every group should have a value of {curve} at the last look. Found none of {', '.join(empty)}."
        )
    found = tuple(
        GapFound((groups[a], groups[b]), float(m), float(m - w), float(m + w))
        for (a, b), m, w in zip(pairs, middle, margin, strict=True)
    )
    return BiasGate(curve, allowed, level, float(last.coords["time"]), trajectory.clock, basis, found)


def _limits(
    trajectory: Trajectory, curve: str, last: xr.DataArray, pairs: list[tuple[int, int]], level: float
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the differences of all pairs, the half-widths of their limits, and the source of these."""
    from scipy.stats import norm, t

    seeds = last.sizes.get("seed", 1)
    if seeds >= FEWEST_SEEDS:
        runs = last.transpose("group", "seed").values
        gaps = np.array([runs[a] - runs[b] for a, b in pairs])
        width = t.isf(level / (2 * len(pairs)), seeds - 1) * gaps.std(axis=1, ddof=1) / math.sqrt(seeds)
        return gaps.mean(axis=1), width, f"scatter over {seeds} seeds"
    if seeds == 1:
        plain = last.squeeze("seed").values if "seed" in last.dims else last.values
        gaps = np.array([plain[a] - plain[b] for a, b in pairs])
        error = trajectory.get(f"{curve}_se")
        if error is not None:
            last_error = error.isel(time=-1)
            each = (last_error.squeeze("seed") if "seed" in last_error.dims else last_error).values
            width = norm.isf(level / (2 * len(pairs))) * np.array([np.hypot(each[a], each[b]) for a, b in pairs])
            return gaps, width, "standard errors of the points looked at, one run"
        if trajectory.origin.source in EXACT:
            return gaps, np.zeros(len(gaps)), "exact values"
    raise ValueError(
        f"A gate needs the uncertainty of {curve}: standard errors {curve}_se, or at least {FEWEST_SEEDS} seeds. "
        f"Found {seeds} {'seed' if seeds == 1 else 'seeds'} and no {curve}_se."
    )


def _pair(found: GapFound) -> str:
    return f"{found.pair[0]} and {found.pair[1]}"
