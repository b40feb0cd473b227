"""Why: the reasons why forecast losses of groups differ, found by removing one reason at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats

from tiltmeter.recipe.recipe import Recipe
from tiltmeter.shown_text import NotebookText

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: A reason matters if the gap changes by more than this fraction without it.
MATTERS = 0.2
#: How often a gap, or the effect of a reason, may be called clear where there is none.
LEVEL = 0.05
#: The reasons that are tried, in words.
SHARES, BASE_RATES, SPREAD = "equal shares of the data", "equal base rates in training", "equal spread of inputs"


@dataclass(frozen=True)
class Why(NotebookText):
    """Why the group `worse` has the larger forecast loss than `better` at a step.

    `losses` are the forecast losses of the groups, `gap` that of worse minus better. `without` is the gap of the same
    forecast with one reason taken away: groups drawn equally often; losses weighed so that every group has the same
    share of each label; kernels scaled so that the outputs of every group react equally strongly to the weights. All of
    them are about training: `from_labels` is the part of the gap due to the shares of labels among the held-out points
    (None for measurements). `shares` is how much of each group's task lies in directions learned by that step.

    `gap_error` and `errors` are standard errors over the held-out points: of the gap, and of its change without each
    reason (paired). A reason is named only if the gap is clear, and the change as well, at 5 % over all pairs of groups
    and all reasons. The chance of the training points is not in them.

    It does not know noise in labels, inputs that say less about the label in one group, or anything else that is in no
    kernel, and says so where the reasons tried leave most of the gap. It explains the linearised network, which learns
    no features.
    """

    step: int
    definition: str
    losses: Mapping[Any, float]
    worse: Any
    better: Any
    without: Mapping[str, float]
    from_labels: float | None
    shares: Mapping[Any, float]
    base_rates: Mapping[Any, float]
    data_shares: Mapping[Any, float]
    spread: Mapping[Any, float]
    gap_error: float = 0.0
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        return self.losses[self.worse] - self.losses[self.better]

    @property
    def fastest(self) -> Any:
        """The group whose task lies most in the directions learned fast."""
        return max(self.shares, key=lambda group: self.shares[group])

    @property
    def clear(self) -> bool:
        """Whether the held-out points show a gap at all."""
        return abs(self.gap) > self._limit(1) * self.gap_error

    @property
    def matter(self) -> tuple[str, ...]:
        """The reasons without which the gap clearly changes, by more than a fifth; the largest change first."""
        changed = {name: abs(self.gap - gap) for name, gap in self.without.items()} if self.clear else {}
        limit = self._limit(len(self.without))
        reasons = [
            name
            for name, change in changed.items()
            if change > MATTERS * abs(self.gap) and change > limit * self.errors.get(name, 0.0)
        ]
        return tuple(sorted(reasons, key=lambda name: -changed[name]))

    def _limit(self, tests: int) -> float:
        """How many standard errors are clear: the groups compared are the extremes of all pairs."""
        return float(stats.norm.isf(LEVEL / 2.0 / max(tests, 1) / comb(len(self.losses), 2)))

    def __str__(self) -> str:
        a, b = self.worse, self.better
        losses = f"{self.losses[a]:.3g} for {a} and {self.losses[b]:.3g} for {b}"
        if not self.clear:
            half = self._limit(1) * self.gap_error
            return (
                f"No difference in forecast {self.definition} is clear at step {self.step}, so no reason is named: "
                f"{losses}. The gap lies between {self.gap - half:.2g} and {self.gap + half:.2g}."
            )
        text = [f"At step {self.step} the forecast {self.definition} is {losses}."]
        facts = {SHARES: (self.data_shares, "of the data"), BASE_RATES: (self.base_rates, "positives")}
        facts[SPREAD] = (self.spread, "of the mean spread")
        for name in self.matter:
            values, word = facts[name]
            known = f" (now {_percent(values[a])} and {_percent(values[b])} {word})" if values else ""
            text.append(f"With {name}{known} {self._left(self.without[name])}.")
        rest = [name for name in self.without if name not in self.matter]
        small = [name for name in rest if abs(self.gap - self.without[name]) <= MATTERS * abs(self.gap)]
        if small:
            text.append(f"{' and '.join(small).capitalize()} would change little.")
        if unclear := [name for name in rest if name not in small]:
            text.append(f"What {' and '.join(unclear)} would change is not clear.")
        mixed = self.from_labels is not None and abs(self.from_labels) > MATTERS * abs(self.gap)
        if mixed and self.from_labels is not None:
            part = _percent(self.from_labels / self.gap) if self.gap else "all"
            text.append(f"Of the gap, {part} comes from different shares of labels among the held-out points.")
        if not self.matter and not mixed:
            text.append("None of these explains the gap: the reason is not known.")
        text.append(self._directions())
        text.append("Noise in labels is not known to a forecast.")
        return " ".join(text)

    def _left(self, gap: float) -> str:
        if gap * self.gap <= 0:
            return "the gap would close or turn round"
        if abs(gap) > abs(self.gap):
            return f"the gap would grow to {_percent(gap / self.gap)} of itself"
        return f"{_percent(gap / self.gap)} of the gap would be left"

    def _directions(self) -> str:
        others = ", ".join(f"{_percent(s)} of {g}'s" for g, s in self.shares.items() if g != self.fastest)
        text = f"By step {self.step} the network has learned the directions that hold "
        text += f"{_percent(self.shares[self.fastest])} of {self.fastest}'s task"
        return f"{text}, against {others}." if others else text + "."


def explain(tangent: Tangent, recipe: Recipe, step: int) -> Why:
    """Forecast the recipe up to a step, and again without each reason in turn."""
    question = tangent.question(recipe)
    plain = _point_losses(tangent, recipe, step)
    by_label = _by_label(tangent, plain)
    losses = {g: float(np.nansum(row[0] * row[1])) for g, row in by_label.items()}
    worse, better = max(losses, key=losses.__getitem__), min(losses, key=losses.__getitem__)
    course = tangent.learned_share(recipe)["learned_share"].sel(time=step).values.tolist()
    rates = tangent.sample.label_rates
    positives = {g: rate[max(rate)] for g, rate in rates.items()} if rates and tangent.columns == 1 else {}
    scale = _spread(tangent)
    tried: dict[str, tuple[Tangent, Recipe]] = {
        SHARES: (tangent, replace(recipe, proportions=dict.fromkeys(tangent.sample.groups, 1.0)))
    }
    weights = _level_weights(rates, recipe.weights)
    if weights is not None:
        tried[BASE_RATES] = tangent, replace(recipe, weights=weights)
    tried[SPREAD] = _level_spread(tangent, scale), recipe
    pair = [tangent.held_out.codes == tangent.held_out.groups.index(group) for group in (worse, better)]
    _, gap_error = _difference(plain, pair)
    without, errors = {}, {}
    for name, (kernels, other) in tried.items():
        changed = _point_losses(kernels, other, step)
        without[name] = _difference(changed, pair)[0]
        errors[name] = _difference(changed - plain, pair)[1]
    mean = float(np.mean(list(scale.values())))
    return Why(
        step,
        question.loss.definition,
        losses,
        worse,
        better,
        without,
        _from_labels(by_label[worse], by_label[better]) if rates else None,
        dict(zip(tangent.sample.groups, course, strict=True)),
        positives,
        dict(zip(tangent.sample.groups, tangent.shares.tolist(), strict=True)),
        {g: value / mean for g, value in scale.items()},
        gap_error,
        errors,
    )


def _point_losses(tangent: Tangent, recipe: Recipe, step: int) -> np.ndarray:
    """The forecast loss of every held-out point."""
    question = tangent.question(recipe)
    outputs = tangent.by_point(tangent.course(question, np.array([step])).outputs)[0]
    answers = tangent.answers(question.loss)
    snapshot = answers.assemble([(0, torch.as_tensor(outputs[:, 0] if outputs.shape[1] == 1 else outputs))])
    assert snapshot.loss is not None
    return np.asarray(snapshot.loss, dtype=float)


def _difference(values: np.ndarray, pair: Sequence[np.ndarray]) -> tuple[float, float]:
    """The mean of the first group's points minus that of the second's, and its standard error."""
    first, second = (values[members] for members in pair)
    variance = sum(float(part.var(ddof=1)) / len(part) if len(part) > 1 else np.inf for part in (first, second))
    return float(first.mean() - second.mean()), float(np.sqrt(variance))


def _by_label(tangent: Tangent, losses: np.ndarray) -> dict[Any, np.ndarray]:
    """For every group, (share, mean loss) of each label among the held-out points."""
    labels, places = np.unique(tangent.held_out.y, return_inverse=True)
    if not tangent.held_out.label_rates:
        labels, places = labels[:1], np.zeros(len(tangent.held_out), dtype=int)  # measurements, not classes
    rows = {}
    for code, group in enumerate(tangent.held_out.groups):
        members = tangent.held_out.codes == code
        counts = np.bincount(places[members], minlength=len(labels))
        with np.errstate(all="ignore"):
            means = np.bincount(places[members], losses[members], len(labels)) / counts
        rows[group] = np.stack([counts / max(counts.sum(), 1), means])
    return rows


def _from_labels(worse: np.ndarray, better: np.ndarray) -> float:
    """The part of the gap that different shares of labels make, at the mean losses of each label (Kitagawa, 1955)."""
    means = np.nanmean([worse[1], better[1]], axis=0)
    return float(np.nansum((worse[0] - better[0]) * means))


def _level_weights(rates: Mapping[Any, Mapping[float, float]], given: Mapping[Any, float] | None) -> Any:
    """Weights under which every group has the mean share of each label; None where a group has none of some label."""
    if not rates or any(share <= 0 for found in rates.values() for share in found.values()):
        return None
    labels = list(next(iter(rates.values())))
    wanted = {label: float(np.mean([found[label] for found in rates.values()])) for label in labels}
    weights = dict(given or {})
    for group, found in rates.items():
        for label, share in found.items():
            weights[group, label] = weights.get((group, label), 1.0) * wanted[label] / share
    return weights


def _spread(tangent: Tangent) -> dict[Any, float]:
    """How strongly the outputs of every group react to the weights: the mean of its kernel's diagonal."""
    codes = np.repeat(tangent.sample.codes, len(tangent.kernel) // len(tangent.sample))
    diagonal = tangent.kernel.diagonal()
    return {group: float(diagonal[codes == code].mean()) for code, group in enumerate(tangent.sample.groups)}


def _level_spread(tangent: Tangent, spread: Mapping[Any, float]) -> Tangent:
    """The same kernels with the gradients of every group scaled to the same mean square."""
    values = np.array(list(spread.values()))
    factor = np.sqrt(values.mean() / np.where(values > 0, values, 1.0))
    rows = len(tangent.kernel) // len(tangent.sample)
    of_sample = np.repeat(factor[tangent.sample.codes], rows)
    of_held_out = np.repeat(factor[tangent.held_out.codes], len(tangent.cross) // len(tangent.held_out))
    return replace(
        tangent,
        kernel=of_sample[:, None] * tangent.kernel * of_sample,
        cross=of_held_out[:, None] * tangent.cross * of_sample,
        _found={},
    )


def _percent(share: float) -> str:
    """Three significant figures; two below 10 %."""
    return f"{100 * share:.{2 if abs(share) < 0.1 else 3}g} %"
