"""why: what makes two groups differ in a trained run: base rates, decisions, shares."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tiltmeter.arguments import A_RUN, checked_kind, checked_share
from tiltmeter.fairness.estimate import Estimate, from_draws
from tiltmeter.fairness.last_evaluation import LastEvaluation, Rates, last_evaluation
from tiltmeter.pairs import Pair, the_pair
from tiltmeter.record.labelled import label_from_json
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText, group_name, percent

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.why import Why

Splittable = Literal["error", "loss"]


@dataclass(frozen=True)
class BaseRateSplit:
    """A difference, first group minus second, as the sum of two parts.

    `base_rates` is what the groups' different shares of positives make, with each label treated as in the mean of both
    groups; `within_labels` is what remains between points of the same label, at the mean of both base rates. The sum
    is exact (Kitagawa, 1955). It is arithmetic, not a cause: other base rates would have trained another model.
    """

    curve: Splittable
    pair: tuple[Hashable, Hashable]
    gap: Estimate
    base_rates: Estimate
    within_labels: Estimate
    level: float


def base_rate_split(evaluation: LastEvaluation, curve: Splittable, pair: Pair, level: float = 0.05) -> BaseRateSplit:
    """Split the difference in `curve` between two groups at the last evaluation.

    >>> found = LastEvaluation(("a", "b"), np.repeat([0, 1], 100), np.arange(200) % 100 < np.repeat([50, 10], 100),
    ...                  np.zeros((1, 200), dtype=bool), np.ones((1, 200)), 10.0)
    >>> split = base_rate_split(found, "error", ("a", "b"))  # says no to all
    >>> round(split.gap.value, 3), round(split.base_rates.value, 3), split.within_labels.value
    (0.4, 0.4, 0.0)
    """
    if curve not in ("error", "loss"):
        raise ValueError(f'`curve` should be "error" or "loss". Found curve = {curve!r}.')
    places = evaluation.groups.index(pair[0]), evaluation.groups.index(pair[1])
    observed = _parts(evaluation.rates(), curve, places)
    drawn = _parts(evaluation.redrawn, curve, places)
    gap, base, within = (from_draws(float(one), many, level) for one, many in zip(observed, drawn, strict=True))
    return BaseRateSplit(curve, (pair[0], pair[1]), gap, base, within, level)


def _parts(rates: Rates, curve: Splittable, places: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gap, part of the base rates, part within labels."""
    a, b = places
    values = rates.wrong if curve == "error" else rates.losses
    first, second = values[..., a, :], values[..., b, :]
    share = rates.base_rate
    middle = (share[..., a] + share[..., b]) / 2.0
    by_label = (first + second) / 2.0
    base = (share[..., a] - share[..., b]) * (by_label[..., 1] - by_label[..., 0])
    within = (1.0 - middle) * (first - second)[..., 0] + middle * (first - second)[..., 1]
    return base + within, base, within


#: What cannot be known from a run.
UNKNOWN = "Noise in labels, and how much the inputs say about them in each group, are not known from a run."


@dataclass(frozen=True)
class Reasons(NotebookText):
    """Why the loss and the error of two groups differ at the end of a run, as far as the run shows it.

    `splits` divide each difference into the part of the base rates and the part within labels (empty where points or
    labels are not known). `base_rates` are those of the points looked at, `shares` those of the training data. `ahead`
    is what a forecast says of shares, base rates and spread in training.
    """

    pair: tuple[Hashable, Hashable]
    splits: tuple[BaseRateSplit, ...]
    base_rates: Mapping[Hashable, float]
    shares: Mapping[Hashable, float]
    ahead: Why | None = None

    def __str__(self) -> str:
        text = []
        names = [group_name(group) for group in self.pair]
        if all(group in self.base_rates for group in self.pair):
            rates = [percent(self.base_rates[group], 1) for group in self.pair]
            text.append(f"Of {names[0]} {rates[0]} are positive, of {names[1]} {rates[1]}.")
        text += [split_sentence(one) for one in self.splits]
        if not self.splits:
            text.append("What base rates contribute is not known: no decisions between two labels were kept.")
        if self.shares:
            shares = [percent(self.shares[group], 1) for group in self.pair]
            text.append(f"{shares[0]} of the training data are {names[0]}, {shares[1]} {names[1]}.")
        if self.ahead is not None:
            text.append(str(self.ahead))
        else:
            text.append("Whether shares, base rates or spread of the training data matter is not known from a run: ")
            text[-1] += "`tangent(model, train, evaluation).why(recipe, step=...)` tries each."
        return " ".join([*text, UNKNOWN])


def split_sentence(split: BaseRateSplit) -> str:
    """A difference and its two parts, in points for shares.

    >>> from tiltmeter.fairness.estimate import Estimate
    >>> parts = Estimate(0.064, 0.053, 0.075), Estimate(0.071, 0.06, 0.08), Estimate(-0.007, -0.016, 0.001)
    >>> print(split_sentence(BaseRateSplit("error", ("men", "women"), *parts, 0.05)))
    The error of men is higher than that of women by 6.4 points: 7.1 from base rates (6.0 to 8.0), −0.7 from
    cases with the same label (−1.6 to 0.1, not clear).
    """
    first, other = split.pair if split.gap.value >= 0 else split.pair[::-1]
    sign = 1.0 if split.gap.value >= 0 else -1.0
    unit, digits, word = (100.0, 1, " points") if split.curve == "error" else (1.0, 3, "")
    gap, base, within = (one.times(sign * unit) for one in (split.gap, split.base_rates, split.within_labels))

    def told(one: Any) -> str:
        limits = f"{number(one.low)} to {number(one.high)}" if one.known else "limits not known"
        return f"{limits}{'' if one.shown or not one.known else ', not clear'}"

    def number(value: float) -> str:
        return f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")

    return (
        f"The {split.curve} of {group_name(first)} is higher than that of {group_name(other)} by "
        f"{number(gap.value)}{word}: {number(base.value)} from base rates ({told(base)}), "
        f"{number(within.value)} from cases with the same label ({told(within)})."
    )


def why(trajectory: Trajectory, *, pair: Pair | None = None, ahead: Why | None = None, level: float = 0.05) -> Reasons:
    """Why two groups differ at the end of a run (by default the only two, or those whose losses are furthest apart).

    >>> import xarray as xr
    >>> from tiltmeter.record import Origin
    >>> loss = xr.DataArray([[0.5, 0.2]], dims=("time", "group"), coords={"time": [9], "group": ["a", "b"]})
    >>> print(why(Trajectory({"loss": loss}, "step", Origin("training"))))  # doctest: +ELLIPSIS
    What base rates contribute is not known: no decisions between two labels were kept. Whether shares, ...

    The differences in error and loss are split exactly into a part due to the groups' base rates and a part within
    labels. This is arithmetic on the held-out points. The effect of the training data is not known from a run: pass the
    result of a forecast, `ahead=tm.tangent(model, train, evaluation).why(recipe, step=...)`.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        pair: Two groups to compare; None: the only two, or those whose losses are furthest apart.
        ahead: What `tm.tangent(...).why(...)` says about the training data; None: its effect is not known.
        level: Error rate of the limits.
    """
    checked_kind("trajectory", trajectory, Trajectory, A_RUN)
    checked_share("level", level)
    refuse_other_than_why("ahead", ahead)
    evaluation = last_evaluation(trajectory)
    chosen = _pair(trajectory, pair)
    splits: tuple[BaseRateSplit, ...] = ()
    rates: Mapping[Hashable, float] = {}
    if evaluation is not None:
        if pair is None:  # chosen after looking, so limits allow for all pairs
            level = level / comb(len(evaluation.groups), 2)
        splits = base_rate_split(evaluation, "error", chosen, level), base_rate_split(evaluation, "loss", chosen, level)
        rates = dict(zip(evaluation.groups, evaluation.rates().base_rate.tolist(), strict=True))
    return Reasons(chosen, splits, rates, trained_shares(trajectory), ahead)


def refuse_other_than_why(name: str, value: object) -> None:
    """Raise a TypeError unless the value says causes: of a preview or of `tangent(...).why(...)`; or None."""
    if value is not None:
        from tiltmeter.preview.causes import Causes

        if isinstance(value, Causes):  # without torch
            return
        from tiltmeter.forecast.kernel.why import Why

        checked_kind(name, value, Why, "what tm.preview(...).causes() or tm.tangent(...).why(...) returns, or None")


def trained_shares(trajectory: Trajectory) -> dict[Hashable, float]:
    """The groups' shares of the training data, where the run noted them."""
    noted: Any = trajectory.origin.settings.get("train")
    if not isinstance(noted, Mapping) or "sizes" not in noted:
        return {}
    return {label_from_json(label): size / noted["points"] for label, size in noted["sizes"]}


def _pair(trajectory: Trajectory, pair: Pair | None) -> Pair:
    named = next((name for name in ("loss", "error") if name in trajectory and trajectory[name].sizes["time"]), None)
    if named is None:
        raise ValueError("A run should have evaluations of `loss` or `error` to be explained. Found none.")
    curve = trajectory[named]
    if pair is not None or curve.sizes.get("group") == 2:
        return the_pair(curve, pair)
    last = curve.isel(time=-1)
    last = last.mean("seed") if "seed" in last.dims else last
    groups = curve.coords["group"].values.tolist()
    values = last.values
    return groups[int(np.nanargmax(values))], groups[int(np.nanargmin(values))]
