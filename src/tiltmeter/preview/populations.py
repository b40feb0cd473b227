"""Populations: the same people with other weights, so that one difference between the groups is absent.

Nobody's values are moved: a shifted column of counts would tell the group by its decimals. A population has a mass for
every training and every judging row, and of a population with one rule soft labels. Targets are fitted on training
people; judging people get weights that reach the same targets.

share      groups are drawn equally often
base rate  every group has the mean share of each label (of numbers: the mean level)
position   the means of all columns are those of everybody, in every group
spread     the variances of numeric columns around the group's own mean are the mean of the groups'
rule       labels follow one rule, fitted to the groups equally, with an intercept that keeps a group's base rate
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, softmax

from tiltmeter.preview.features import columns
from tiltmeter.preview.flow import flow
from tiltmeter.preview.inputs import Inputs, Rows

#: The five properties of the data, in the order in which they are shown.
CAUSES = ("share", "base rate", "position", "spread", "rule")
#: People of a group that a population should be worth, of training and of judging; and rows with each label.
WORTH_TRAINING, WORTH_JUDGING, WITH_LABEL = 100.0, 50.0, 20
#: Newton steps of the balance and its ridge.
STEPS, RIDGE = 60, 1e-4
#: A mean that is off by more than this part of the overall spread was not reached.
REACHED = 0.05


@dataclass(frozen=True, eq=False)
class Population:
    """Training and judging rows of a population in which one difference is absent; `refused` says why there is none."""

    cause: str
    train: Rows
    held_out: Rows
    refused: str = ""


def balance(x: np.ndarray, target: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Weights of the people of one group, nearest to `base`, under which the means of the columns are `target`.

    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> weights = balance(x, np.array([1.5]), np.full(3, 1 / 3))
    >>> float((weights @ x).round(3)[0]), bool((weights > 0).all())
    (1.5, True)

    Entropy balancing (Hainmueller, 2012): weights base exp(lambda . x), with lambda from Newton's method on the dual
    and a small ridge, which gives up a target that cannot be reached.
    """
    away = x - target
    count = x.shape[1]
    point = np.zeros(count)
    value, weights = _dual(away, point, base)
    for _ in range(STEPS):
        slope = weights @ away + RIDGE * point
        if np.abs(slope).max(initial=0.0) < 1e-9:
            break
        centred = away - weights @ away
        bend = centred.T @ (weights[:, None] * centred) + RIDGE * np.eye(count)
        step = np.linalg.solve(bend, slope)
        length = 1.0
        for _ in range(30):
            tried = point - length * step
            new_value, new_weights = _dual(away, tried, base)
            if new_value <= value - 1e-4 * length * float(slope @ step):
                point, value, weights = tried, new_value, new_weights
                break
            length /= 2.0
        else:
            break
    return weights


def _dual(away: np.ndarray, point: np.ndarray, base: np.ndarray) -> tuple[float, np.ndarray]:
    raw = away @ point
    top = raw.max()
    weights = base * np.exp(raw - top)
    total = weights.sum()
    return float(np.log(total) + top + 0.5 * RIDGE * point @ point), np.asarray(weights / total)


def populations(inputs: Inputs, causes: tuple[str, ...] = CAUSES) -> dict[str, Population]:
    """The population of every cause; those whose people are worth too few are refused with a sentence."""
    table = _Table.of(inputs)
    makers: dict[str, Callable[[_Table], Population]] = {
        "share": _share,
        "base rate": _base_rate,
        "position": _position,
        "spread": _spread,
        "rule": _rule,
    }
    return {cause: _worth(inputs, makers[cause](table)) for cause in causes}


@dataclass(frozen=True, eq=False)
class _Table:
    """The rows with their columns standardised by the training rows, and the numeric ones among them."""

    inputs: Inputs
    x: np.ndarray
    held_x: np.ndarray
    numeric: np.ndarray

    @classmethod
    def of(cls, inputs: Inputs) -> _Table:
        seen = columns(inputs.train.x)
        x, held_x = seen.standardised(inputs.train.x), seen.standardised(inputs.held_out.x)
        few = np.array([len(np.unique(column[:2000])) <= 2 for column in x.T])
        return cls(inputs, x, held_x, ~few)

    def groups(self) -> range:
        return range(len(self.inputs.groups))

    def own(self, rows: Rows, group: int) -> np.ndarray:
        return np.flatnonzero(rows.codes == group)

    def made(self, cause: str, train_mass: np.ndarray, held_mass: np.ndarray) -> Population:
        inputs = self.inputs
        return Population(
            cause,
            replace(inputs.train, mass=train_mass / train_mass.sum()),
            replace(inputs.held_out, mass=held_mass / held_mass.sum()),
        )

    def within(self, weigh: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Masses of both parts where the people of each group are weighted anew and its share stays."""
        found = []
        for place, rows in enumerate((self.inputs.train, self.inputs.held_out)):
            mass = rows.mass.copy()
            for group in self.groups():
                own = self.own(rows, group)
                mass[own] = mass[own].sum() * weigh(group)[place]
            found.append(mass)
        return found[0], found[1]


def _share(table: _Table) -> Population:
    masses = []
    for rows in (table.inputs.train, table.inputs.held_out):
        own = np.bincount(rows.codes, rows.mass, len(table.inputs.groups))
        masses.append(rows.mass / own[rows.codes])
    return table.made("share", *masses)


def _base_rate(table: _Table) -> Population:
    inputs = table.inputs
    if inputs.kind == "numbers" and not inputs.classes:
        return _level(table)
    labels = [_classes_of(inputs, rows) for rows in (inputs.train, inputs.held_out)]
    count = int(labels[0].max()) + 1
    shares = np.stack([_label_shares(labels[0], inputs.train, g, count) for g in table.groups()])
    target = shares.mean(axis=0)
    masses = []
    for rows, label in zip((inputs.train, inputs.held_out), labels, strict=True):
        own = np.stack([_label_shares(label, rows, g, count) for g in table.groups()])
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(own > 0, target / own, 0.0)
        masses.append(rows.mass * factor[rows.codes, label])
    return table.made("base rate", *masses)


def _level(table: _Table) -> Population:
    """Of a regression: everybody's mean label in every group."""
    train, held = table.inputs.train, table.inputs.held_out
    means = [
        np.average(train.labels[table.own(train, g)], weights=train.mass[table.own(train, g)]) for g in table.groups()
    ]
    wide = float(np.std(train.labels)) or 1.0
    target = np.array([float(np.mean(means)) / wide])

    def weigh(group: int) -> tuple[np.ndarray, np.ndarray]:
        parts = []
        for rows in (train, held):
            own = table.own(rows, group)
            parts.append(balance(rows.labels[own, None] / wide, target, rows.mass[own] / rows.mass[own].sum()))
        return parts[0], parts[1]

    return table.made("base rate", *table.within(weigh))


def _classes_of(inputs: Inputs, rows: Rows) -> np.ndarray:
    if inputs.kind == "classes":
        return np.asarray(rows.labels.argmax(axis=1))
    cut = 0.5 if inputs.kind == "binary" else sum(inputs.classes) / 2
    return np.asarray(rows.labels > cut, dtype=int)


def _label_shares(labels: np.ndarray, rows: Rows, group: int, count: int) -> np.ndarray:
    own = rows.codes == group
    found = np.bincount(labels[own], rows.mass[own], count)
    return np.asarray(found / max(found.sum(), 1e-300))


def _position(table: _Table) -> Population:
    train = table.inputs.train
    target = np.average(table.x, axis=0, weights=train.mass)
    return table.made("position", *_balanced(table, lambda x, _: (x, target)))


def _spread(table: _Table) -> Population:
    """The group's own means are kept, and the variances around them become the mean of the groups'."""
    train, numeric = table.inputs.train, table.numeric
    means, variances = [], []
    for group in table.groups():
        own = table.own(train, group)
        mass = train.mass[own] / train.mass[own].sum()
        mean = mass @ table.x[own]
        means.append(mean)
        variances.append(mass @ (table.x[own] - mean) ** 2)
    even = np.mean(variances, axis=0)[numeric]

    def wanted(x: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
        squares = (x[:, numeric] - means[group][numeric]) ** 2
        return np.concatenate([x, squares], axis=1), np.concatenate([means[group], even])

    return table.made("spread", *_balanced(table, wanted))


def _balanced(
    table: _Table, wanted: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Masses of both parts whose columns have the wanted means in every group, where they vary within it."""

    def weigh(group: int) -> tuple[np.ndarray, np.ndarray]:
        parts = []
        for rows, x in ((table.inputs.train, table.x), (table.inputs.held_out, table.held_x)):
            own = table.own(rows, group)
            base = rows.mass[own] / rows.mass[own].sum()
            moments, target = wanted(x[own], group)
            # A column that is the same for the whole group, as that of the group itself, cannot be balanced.
            varies = moments.std(axis=0) > 1e-9
            scale = np.maximum(moments[:, varies].std(axis=0), 1e-9)
            parts.append(balance(moments[:, varies] / scale, target[varies] / scale, base))
        return parts[0], parts[1]

    return table.within(weigh)


def _rule(table: _Table) -> Population:
    """Soft labels by one rule for all groups, and an intercept for each that keeps its base rate."""
    inputs = table.inputs
    train, held = inputs.train, inputs.held_out
    even = _share(table).train.mass
    members = np.eye(len(inputs.groups))
    seen = np.concatenate([table.x, members[train.codes]], axis=1)
    judged = np.concatenate([table.held_x, members[held.codes]], axis=1)
    weights = flow(seen, train.labels, even, inputs.kind).weights[-1]
    scores, held_scores = seen @ weights, judged @ weights
    if inputs.kind == "numbers":
        labels, held_labels = scores[:, 0], held_scores[:, 0]
        for group in table.groups():
            own, other = table.own(train, group), table.own(held, group)
            labels[own] += np.average(train.labels[own] - labels[own], weights=train.mass[own])
            held_labels[other] += np.average(held.labels[other] - held_labels[other], weights=held.mass[other])
    elif inputs.kind == "binary":
        labels = _kept_rates(table, scores[:, 0], train)
        held_labels = _kept_rates(table, held_scores[:, 0], held)
    else:
        labels, held_labels = softmax(scores, axis=1), softmax(held_scores, axis=1)
    return Population("rule", replace(train, labels=labels), replace(held, labels=held_labels))


def _kept_rates(table: _Table, scores: np.ndarray, rows: Rows) -> np.ndarray:
    """Probabilities whose mean in every group is its base rate."""
    chance = np.empty(len(scores))
    for group in table.groups():
        own = table.own(rows, group)
        mass = rows.mass[own] / rows.mass[own].sum()
        rate = float(np.clip(mass @ rows.labels[own], 1e-6, 1.0 - 1e-6))
        one = scores[own]
        middle = float(logit(rate)) - float(np.median(one))
        shift = brentq(lambda b, s=one, m=mass, r=rate: float(m @ expit(s + b)) - r, middle - 60.0, middle + 60.0)
        chance[own] = expit(one + shift)
    return chance


def _worth(inputs: Inputs, made: Population) -> Population:
    """Refuse a population in which a group is worth too few people, or has too few with a label."""
    for rows, least, what in ((made.train, WORTH_TRAINING, "training"), (made.held_out, WORTH_JUDGING, "judging")):
        for place, group in enumerate(inputs.groups):
            mass = rows.mass[rows.codes == place]
            worth = float(mass.sum() ** 2 / max((mass**2).sum(), 1e-300))
            if worth < least:
                return replace(made, refused=_sentence(made.cause, group, worth, what))
    return made


def few_people(inputs: Inputs) -> dict[int, str]:
    """The groups, by place, that cannot be reweighted: too few people, or too few training rows with a label."""
    found: dict[int, str] = {}
    decided = inputs.kind != "numbers" or bool(inputs.classes)
    labels = _classes_of(inputs, inputs.train) if decided else np.zeros(0, dtype=int)
    for place in range(len(inputs.groups)):
        own = inputs.train.codes == place
        for count, least, what in (
            (int(own.sum()), WORTH_TRAINING, "training"),
            (int((inputs.held_out.codes == place).sum()), WORTH_JUDGING, "judging"),
        ):
            if count < least:
                found.setdefault(place, f"{count} {what} people")
        if decided:
            rarest = int(np.bincount(labels[own], minlength=int(labels.max()) + 1).min())
            if rarest < WITH_LABEL:
                found.setdefault(place, f"{rarest} training rows of a label")
    return found


def _sentence(cause: str, group: Hashable, worth: float, what: str) -> str:
    return f"{cause}: reweighted, the {what} people of group {group} are worth only {int(worth)}"
