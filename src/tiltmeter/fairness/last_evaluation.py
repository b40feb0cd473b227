"""LastEvaluation: the decisions of a trained model about every point, and the rates of groups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tiltmeter.fairness.estimate import UNKNOWN, Estimate, from_draws
from tiltmeter.leaders.bands import MANY, bootstrap_weights, in_bags, members_of
from tiltmeter.leaders.points import kept_points
from tiltmeter.leaders.seed_bands import FEWEST_SEEDS
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.threads import one_blas_thread

#: Number of bootstrap draws for limits.
DRAWS = 1999


@dataclass(frozen=True, eq=False)
class Rates:
    """Groups by label: how many points, which share of them was decided positive, and their mean loss.

    >>> found = Rates(np.array([[90.0, 10.0]]), np.array([[0.1, 0.5]]), np.array([[0.2, 1.0]]))
    >>> found.base_rate.tolist(), found.positive_rate.round(3).tolist(), found.error.round(3).tolist()
    ([0.1], [0.14], [0.14])
    >>> found.ppv.round(3).tolist(), found.errors_removed.round(3).tolist()
    ([0.357], [-0.4])

    Each array ends with dimensions (group, label), label 0 the negative one; dimensions before them are draws. All that
    is asked of decisions between two labels follows. Several seeds are averaged before ratios are taken.
    """

    count: np.ndarray
    decided: np.ndarray
    losses: np.ndarray

    @property
    def base_rate(self) -> np.ndarray:
        """Share of positives."""
        with np.errstate(all="ignore"):
            return np.asarray(self.count[..., 1] / self.count.sum(-1))

    @property
    def tpr(self) -> np.ndarray:
        return np.asarray(self.decided[..., 1])

    @property
    def fpr(self) -> np.ndarray:
        return np.asarray(self.decided[..., 0])

    @property
    def positive_rate(self) -> np.ndarray:
        return self._over_labels(self.decided)

    @property
    def loss(self) -> np.ndarray:
        return self._over_labels(self.losses)

    @property
    def wrong(self) -> np.ndarray:
        """Share of wrong decisions, (..., group, label)."""
        return np.stack([self.decided[..., 0], 1.0 - self.decided[..., 1]], -1)

    @property
    def error(self) -> np.ndarray:
        return self._over_labels(self.wrong)

    @property
    def ppv(self) -> np.ndarray:
        """Share of positive decisions that are right; NaN where there are none."""
        said = self.positive_rate
        right = self.base_rate * np.where(self.count[..., 1] > 0, self.decided[..., 1], 0.0)
        return np.asarray(np.divide(right, said, out=np.full(said.shape, np.nan), where=said > 0))

    @property
    def constant_error(self) -> np.ndarray:
        """Error of the one answer, always yes or always no, that errs least in the group."""
        return np.asarray(np.minimum(self.base_rate, 1.0 - self.base_rate))

    @property
    def errors_removed(self) -> np.ndarray:
        """Of the errors of the best constant answer, the share that the model avoids; negative where it adds some."""
        constant = self.constant_error
        share = np.divide(self.error, constant, out=np.full(constant.shape, np.nan), where=constant > 0)
        return np.asarray(1.0 - share)

    def _over_labels(self, values: np.ndarray) -> np.ndarray:
        counted = np.where(self.count > 0, self.count * values, 0.0)  # a label without points has no weight
        with np.errstate(all="ignore"):
            return np.asarray(counted.sum(-1) / self.count.sum(-1))


@dataclass(frozen=True, eq=False)
class LastEvaluation:
    """Every point at the last evaluation that was kept: `decided` and `loss` have shape (seeds, points)."""

    groups: tuple[Hashable, ...]
    codes: np.ndarray
    positive: np.ndarray
    decided: np.ndarray
    loss: np.ndarray
    time: float

    @property
    def seeds(self) -> int:
        return len(self.decided)

    @property
    def counts(self) -> np.ndarray:
        """Points by (group, label)."""
        cells = np.bincount(2 * self.codes + self.positive, minlength=2 * len(self.groups))
        return cells.reshape(-1, 2)

    def rates(self) -> Rates:
        """The groups as they are, averaged over seeds."""
        return self._rates(self.decided.mean(0), self.loss.mean(0, dtype=np.float64))

    @cached_property
    def redrawn(self) -> Rates:
        """The groups with their points resampled with replacement, 1,999 times; from five seeds on, seeds too.

        Quantiles over the first dimension are limits for other points (and other seeds) like these. Points and seeds
        are drawn independently (Owen, 2007), which is slightly too wide.
        """
        draws, rng = DRAWS, np.random.default_rng([0, 11])
        members = members_of(self.codes, len(self.groups), np.random.default_rng([0, 12]))
        columns = [self._columns(own) for own in members]
        columns = [in_bags(column) for column in columns] if len(self.codes) >= MANY else columns
        with one_blas_thread():
            blocks = [
                np.stack([weights @ column for weights, column in zip(block, columns, strict=True)], 1)
                for block in bootstrap_weights([len(column) for column in columns], draws, rng)
            ]
        sums = np.concatenate(blocks).reshape(draws, len(members), 2, 1 + 2 * self.seeds)
        count, rest = sums[..., 0], sums[..., 1:]
        with np.errstate(all="ignore"):
            decided, loss = (part / count[..., None] for part in np.split(rest, 2, -1))
        chosen = np.full((draws, self.seeds), 1.0 / self.seeds)
        if self.seeds >= FEWEST_SEEDS:
            chosen = rng.multinomial(self.seeds, [1.0 / self.seeds] * self.seeds, draws) / self.seeds
        averaged = [np.einsum("dgls,ds->dgl", part, chosen) for part in (decided, loss)]
        return Rates(count.astype(float), *averaged)

    def _columns(self, own: np.ndarray) -> np.ndarray:
        """(points of a group, label x (1, decisions of every seed, losses of every seed))."""
        values = np.concatenate([np.ones((1, len(own))), self.decided[:, own], self.loss[:, own]])
        labels = np.stack([~self.positive[own], self.positive[own]])
        return np.asarray((labels[:, None] * values[None]).reshape(-1, len(own)).T, dtype=np.float32)

    def _rates(self, decided: np.ndarray, loss: np.ndarray) -> Rates:
        cells, size = 2 * self.codes + self.positive, 2 * len(self.groups)
        count = np.bincount(cells, minlength=size).astype(float)
        with np.errstate(all="ignore"):
            shares, losses = (np.bincount(cells, one, size) / count for one in (decided, loss))
        return Rates(*(one.reshape(-1, 2) for one in (count, shares, losses)))


def last_evaluation(trajectory: Trajectory) -> LastEvaluation | None:
    """The last evaluation of a run with two labels whose points were kept; None for any other run."""
    kept = kept_points(trajectory)
    if kept is None:
        return None
    curves = {curve.name: curve for curve in kept.curves}
    if "tpr" not in curves:
        return None
    positive = curves["tpr"].where
    assert positive is not None
    decided = np.atleast_2d(curves["positive_rate"].values[..., -1, :])
    # A table of decisions without scores has no losses.
    loss = np.atleast_2d(curves["loss"].values[..., -1, :]) if "loss" in curves else np.full(decided.shape, np.nan)
    return LastEvaluation(kept.groups, kept.codes, positive, decided, loss, float(kept.times[-1]))


def last_probabilities(trajectory: Trajectory, evaluation: LastEvaluation) -> np.ndarray | None:
    """(seeds, points): the probability of the positive label; None if none were kept, or if another rule decides.

    >>> import xarray as xr
    >>> from tiltmeter.fairness.last_evaluation import last_evaluation
    >>> from tiltmeter.record import Origin
    >>> chance = np.array([0.2, 0.8])
    >>> coords = {"time": [9], "group": ("point", ["a", "b"]), "positive": ("point", [True, True])}
    >>> arrays = {"probability": chance, "loss": chance, "decided_positive": chance > 0.5}
    >>> points = {name: xr.DataArray(one[None], dims=("time", "point"), coords=coords) for name, one in arrays.items()}
    >>> run = Trajectory({}, "step", Origin("training"), points=points)
    >>> last_probabilities(run, last_evaluation(run)).tolist()
    [[0.2, 0.8]]
    """
    chance = kept_at(trajectory, "probability", evaluation.time)
    if chance is None or chance.shape != evaluation.decided.shape:
        return None
    return None if ((chance > 0.5) != evaluation.decided).mean() > 1e-3 else chance


def kept_at(trajectory: Trajectory, name: str, time: float) -> np.ndarray | None:
    """(seeds, points): what was kept of every point at the last evaluation; None unless that was at this time."""
    array = trajectory.points.get(name)
    if array is None or not array.sizes["time"] or set(array.dims) - {"time", "point", "seed"}:
        return None
    last = array.isel(time=-1)
    values = np.atleast_2d(last.transpose(*(("seed", "point") if "seed" in last.dims else ("point",))).values)
    return values if float(last.coords["time"]) == time and np.isfinite(values).all() else None


def same_points(one: LastEvaluation, other: LastEvaluation) -> bool:
    """Whether two runs looked at points with the same groups and labels in the same order."""
    return (
        one.groups == other.groups
        and np.array_equal(one.codes, other.codes)
        and np.array_equal(one.positive, other.positive)
    )


def paired_change(
    base: LastEvaluation, other: LastEvaluation, rate: str, places: tuple[int, int] | None = None, level: float = 0.05
) -> Estimate:
    """Return the change of a rate of `Rates` ("tpr", "error" ...) from `base` to `other`, at the last evaluation of
    each.

    >>> codes, positive = np.repeat([0, 1], 100), np.ones(200, dtype=bool)
    >>> yes = np.arange(200) % 100 < np.repeat([20, 60], 100)
    >>> runs = [LastEvaluation(("a", "b"), codes, positive, one[None], np.ones((1, 200)), 9.0) for one in (yes, ~yes)]
    >>> found = paired_change(*runs, "tpr", (0, 1))
    >>> round(found.value, 2), found.shown  # from -0.4 to +0.4
    (0.8, True)

    With `places` it is the change of the difference between two groups, else that of all points together. The same
    points (and from five seeds on the same seeds) are redrawn for both runs, so what they share cancels. Unknown if the
    runs looked at different points.
    """
    if not same_points(base, other):
        return UNKNOWN
    now = _of(other, rate, places, False) - _of(base, rate, places, False)
    drawn = _of(other, rate, places, True) - _of(base, rate, places, True)
    return from_draws(float(now), drawn, level)


def _of(evaluation: LastEvaluation, rate: str, places: tuple[int, int] | None, redrawn: bool) -> np.ndarray:
    rates = evaluation.redrawn if redrawn else evaluation.rates()
    values = getattr(rates, rate)
    if places is not None:
        return np.asarray(values[..., places[0]] - values[..., places[1]])
    sizes = rates.count.sum(-1)
    return np.asarray((values * sizes).sum(-1) / sizes.sum(-1))
