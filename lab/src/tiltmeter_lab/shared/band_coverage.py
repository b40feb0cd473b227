"""Coverage of bands: draw points from a population, or seeds from a recipe, whose true curves are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter.leaders.bands import Limits
from tiltmeter.leaders.points import pairs
from tiltmeter.leaders.seed_bands import two_way
from tiltmeter_lab.shared.alarm_rates import as_run
from tiltmeter_lab.shared.deal_tasks import trained_for
from tiltmeter_lab.shared.random_deals import ANY, five_curves, misses

#: The first seed of the networks that judge two-way bands. Smaller ones were used while the bands were developed.
JUDGED = 5000


def population_draws(setting: Any, task: str, size: int) -> tm.Trajectory:
    """Draw groups of this size from all points of one network and test whether bands cover the curves of all points."""
    seen = trained_for(setting, task, range(1), 20_000)
    loss, decided, positive, codes = seen.loss[0], seen.decided[0], seen.positive, seen.codes
    truth = {curve.name: gap_of(curve.values, curve.where, codes) for curve in five_curves(loss, decided, positive)}
    members = [np.flatnonzero(codes == group) for group in (0, 1)]
    asked = ("loss", "error", "tpr")
    rows, widths = [], []
    for draw in range(setting.draws):
        rng = np.random.default_rng([draw, size])
        chosen = np.concatenate([rng.choice(own, size) for own in members])
        curves = {c.name: c for c in five_curves(loss[:, chosen], decided[:, chosen], positive[chosen])}
        drawn = np.repeat([0, 1], size)
        kept = [curves[name] for name in asked]
        limits = Limits(kept, drawn, pairs(2), draws=499, permutations=199)
        together = limits.of(asked, 0.05)
        alone = {name: limits.of([name], 0.05)[name] for name in asked}
        missed = [misses(alone[name], truth[name]) for name in asked]
        rows.append([*missed, any(misses(together[name], truth[name]) for name in asked)])
        widths.append([float(np.nanmean(alone[name].upper - alone[name].lower)) for name in asked] + [np.nan])
    coords = {"draw": np.arange(setting.draws), "curve": [*asked, ANY]}
    return as_run(
        xr.Dataset(
            {
                "missed": (("draw", "curve"), np.array(rows, dtype=float)),
                "width": (("draw", "curve"), np.array(widths)),
            },
            coords=coords,
        )
    )


def recipe_draws(setting: Any, task: str, seeds: int) -> tm.Trajectory:
    """Draw seeds and points and test whether two-way bands cover the mean over all seeds on all points."""
    seen = trained_for(setting, task, range(JUDGED, JUDGED + setting.recipe_runs), 2000)
    asked = ("loss", "error", "tpr")
    every = [five_curves(*one, seen.positive) for one in zip(seen.loss, seen.decided, strict=True)]
    truth = {
        name: np.mean([gap_of(c.values, c.where, seen.codes) for own in every for c in own if c.name == name], axis=0)
        for name in asked
    }
    members = [np.flatnonzero(seen.codes == group) for group in (0, 1)]
    rows, widths, named = [], [], []
    for draw in range(setting.recipe_draws):
        rng = np.random.default_rng([draw, seeds, JUDGED])
        runs = rng.permutation(setting.recipe_runs)[:seeds]
        sizes = (60, 300) if draw % 2 else (300, 300)
        chosen = np.concatenate([rng.choice(own, size) for own, size in zip(members, sizes, strict=True)])
        drawn = np.repeat([0, 1], sizes)
        loss, decided, positive = seen.loss[runs][:, :, chosen], seen.decided[runs][:, :, chosen], seen.positive[chosen]
        curves = [c for c in five_curves(loss, decided, positive) if c.name in asked]
        alone = {c.name: two_way([c], drawn, pairs(2), draws=499, permutations=199)[c.name] for c in curves}
        together = two_way(curves, drawn, pairs(2), draws=499, permutations=199)
        missed = [misses(alone[name], truth[name]) for name in asked]
        rows.append([*missed, any(misses(together[name], truth[name]) for name in asked)])
        widths.append([float(np.nanmean(alone[name].upper - alone[name].lower)) for name in asked] + [np.nan])
        dealt = two_way(
            five_curves(loss, decided, positive), rng.permutation(drawn), pairs(2), draws=499, permutations=199
        )
        named.append(float(any(band.shown.any() for band in dealt.values())))
    coords = {"draw": np.arange(setting.recipe_draws), "curve": [*asked, ANY]}
    both = ("draw", "curve")
    return as_run(
        xr.Dataset(
            {
                "missed": (both, np.array(rows, dtype=float)),
                "width": (both, np.array(widths)),
                "named": ("draw", named),
            },
            coords=coords,
        )
    )


def gap_of(values: np.ndarray, where: np.ndarray | None, codes: np.ndarray) -> np.ndarray:
    counted = np.ones(len(codes), dtype=bool) if where is None else where
    means = [values[:, (codes == group) & counted].mean(1, dtype=np.float64) for group in (0, 1)]
    return np.asarray(means[0] - means[1])
