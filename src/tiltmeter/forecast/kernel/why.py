"""Why: the reasons why forecast losses of groups differ, found by removing one reason at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tiltmeter.recipe.recipe import Recipe
from tiltmeter.shown_text import NotebookText

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: A reason matters if the gap changes by more than this fraction without it.
MATTERS = 0.2
#: The reasons that are tried, in words.
SHARES, BASE_RATES, SPREAD = "equal shares of the data", "equal base rates in training", "equal spread of inputs"


@dataclass(frozen=True)
class Why(NotebookText):
    """Why the group `worse` has the larger forecast loss than `better` at a step.

    `losses` are the forecast losses of the groups, `gap` that of worse minus better. `without` is the gap of the same
    forecast with one reason taken away: groups drawn equally often; losses weighed so that every group has the same
    share of each label; kernels scaled so that the outputs of every group react equally strongly to the weights. All of
    them are about training: `from_labels` is the part of the gap due to the shares of labels among the points looked at
    (None for measurements). `shares` is how much of each group's task lies in directions learned by that step.

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

    @property
    def gap(self) -> float:
        return self.losses[self.worse] - self.losses[self.better]

    @property
    def fastest(self) -> Any:
        """The group whose task lies most in the directions learned fast."""
        return max(self.shares, key=lambda group: self.shares[group])

    @property
    def matter(self) -> tuple[str, ...]:
        """The reasons without which the gap changes by more than a fifth, the largest change first."""
        changed = {name: abs(self.gap - gap) for name, gap in self.without.items()}
        found = [name for name, change in changed.items() if change > MATTERS * abs(self.gap)]
        return tuple(sorted(found, key=lambda name: -changed[name]))

    def __str__(self) -> str:
        a, b = self.worse, self.better
        text = [
            f"At step {self.step} the forecast {self.definition} is {self.losses[a]:.3g} for {a} and "
            f"{self.losses[b]:.3g} for {b}."
        ]
        facts = {SHARES: (self.data_shares, "of the data"), BASE_RATES: (self.base_rates, "positives")}
        facts[SPREAD] = (self.spread, "of the mean spread")
        for name in self.matter:
            values, word = facts[name]
            known = f" (now {_percent(values[a])} and {_percent(values[b])} {word})" if values else ""
            text.append(f"With {name}{known} {self._left(self.without[name])}.")
        rest = [name for name in self.without if name not in self.matter]
        if rest:
            text.append(f"{' and '.join(rest).capitalize()} would change little.")
        mixed = self.from_labels is not None and abs(self.from_labels) > MATTERS * abs(self.gap)
        if mixed and self.from_labels is not None:
            part = _percent(self.from_labels / self.gap) if self.gap else "all"
            text.append(f"Of the gap, {part} comes from different shares of labels among the points looked at.")
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
    held_out = np.array([step])
    by_label = _losses(tangent, recipe, held_out)
    losses = {g: float(np.nansum(row[0] * row[1])) for g, row in by_label.items()}
    worse, better = max(losses, key=losses.__getitem__), min(losses, key=losses.__getitem__)
    course = tangent.learned_share(recipe)["learned_share"].sel(time=step).values.tolist()
    rates = tangent.sample.label_rates
    positives = {g: found[max(found)] for g, found in rates.items()} if rates and tangent.columns == 1 else {}
    scale = _spread(tangent)
    tried: dict[str, tuple[Tangent, Recipe]] = {
        SHARES: (tangent, replace(recipe, proportions=dict.fromkeys(tangent.sample.groups, 1.0)))
    }
    weights = _level_weights(rates, recipe.weights)
    if weights is not None:
        tried[BASE_RATES] = tangent, replace(recipe, weights=weights)
    tried[SPREAD] = _level_spread(tangent, scale), recipe
    without = {}
    for name, (kernels, other) in tried.items():
        found = _losses(kernels, other, held_out)
        sums = {g: float(np.nansum(row[0] * row[1])) for g, row in found.items()}
        without[name] = sums[worse] - sums[better]
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
    )


def _losses(tangent: Tangent, recipe: Recipe, held_out: np.ndarray) -> dict[Any, np.ndarray]:
    """For every group, (share, mean loss) of each label among the points looked at."""
    question = tangent.question(recipe)
    outputs = tangent.by_point(tangent.course(question, held_out).outputs)[0]
    answers = tangent.answers(question.loss)
    snapshot = answers.assemble([(0, torch.as_tensor(outputs[:, 0] if outputs.shape[1] == 1 else outputs))])
    assert snapshot.loss is not None
    labels, places = np.unique(tangent.held_out.y, return_inverse=True)
    if not tangent.held_out.label_rates:
        labels, places = labels[:1], np.zeros(len(tangent.held_out), dtype=int)  # measurements, not classes
    found = {}
    for code, group in enumerate(tangent.held_out.groups):
        own = tangent.held_out.codes == code
        counts = np.bincount(places[own], minlength=len(labels))
        with np.errstate(all="ignore"):
            means = np.bincount(places[own], snapshot.loss[own], len(labels)) / counts
        found[group] = np.stack([counts / max(counts.sum(), 1), means])
    return found


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
