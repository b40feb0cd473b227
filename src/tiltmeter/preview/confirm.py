"""confirm: networks trained in the populations of the largest causes, beside what the theory said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import t as student
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.leaders.headline import RATES
from tiltmeter.losses import CrossEntropy, Logistic, Square
from tiltmeter.preview.causes import SHOWN, Causes
from tiltmeter.preview.curves import PHASES
from tiltmeter.preview.features import columns
from tiltmeter.preview.inputs import Inputs, Rows
from tiltmeter.preview.populations import Population, populations
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, log_spaced
from tiltmeter.shown_text import NotebookText
from tiltmeter.training.loop import train

if TYPE_CHECKING:
    import pandas as pd

#: Rows that are drawn for one training, at most.
MOST_DRAWN = 200_000
#: The limits of what came hold with this probability, for one change.
LEVEL = 0.9


@dataclass(frozen=True)
class Came:
    """What the theory said a population does to the gap in one phase, and what trained networks did."""

    cause: str
    phase: str
    said: float
    came: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the trainings agree on the sign."""
        return self.low > 0 or self.high < 0

    @property
    def agrees(self) -> bool:
        """Whether the theory said the sign that came."""
        return self.said * self.came > 0


@dataclass(frozen=True)
class Confirmed(NotebookText):
    """Networks trained in populations: the change of the gap that came, with 90 % limits, beside what was said.

    >>> row = Came("position", "late", said=0.09, came=0.08, low=0.05, high=0.11)
    >>> print(Confirmed("tpr", 5, (row,)))
    Trained 5 networks in each population: 1 of 1 clear changes have the sign that was said.
      in a population with ...  phase         said     came   90 % limits (points)
      the same position         late            +9       +8   +5 to +11

    Args:
        curve: Curve whose gap it is.
        seeds: Trainings in every population.
        rows: One `Came` for each property and phase.
    """

    curve: str
    seeds: int
    rows: tuple[Came, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row for each property and phase."""
        import pandas as pd

        return pd.DataFrame([{**vars(row), "clear": row.clear, "agrees": row.agrees} for row in self.rows])

    def __str__(self) -> str:
        clear = [row for row in self.rows if row.clear]
        right = sum(row.agrees for row in clear)
        scale = 100.0 if self.curve in RATES else 1.0
        form = "{:+.0f}" if self.curve in RATES else "{:+.3f}"
        unit = "points" if self.curve in RATES else "loss"
        lines = [
            f"Trained {self.seeds} networks in each population: {right} of {len(clear)} clear changes have the sign "
            "that was said.",
            f"  {'in a population with ...':26}{'phase':9}{'said':>9}{'came':>9}   90 % limits ({unit})",
        ]
        for row in self.rows:
            said, came, low, high = (form.format(scale * one) for one in (row.said, row.came, row.low, row.high))
            lines.append(f"  {SHOWN[row.cause]:26}{row.phase:9}{said:>9}{came:>9}   {low} to {high}")
        return "\n".join(lines)


def small_network(inputs: int, outputs: int) -> nn.Module:
    """The network of `tiltmeter init`: one hidden layer of 64 units."""
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, outputs))


def confirmed(
    inputs: Inputs,
    causes: Causes,
    sides: tuple[int, int | None],
    top: int = 2,
    seeds: int = 5,
    model: Callable[[], nn.Module] | None = None,
    recipe: Recipe | None = None,
) -> Confirmed:
    """Train in the populations of the `top` largest causes at the end, paired by seed with trainings as it is."""
    if seeds < 2:
        raise ValueError(f"`seeds` should be at least 2: one training has no spread. Found seeds = {seeds!r}.")
    if model is not None and (isinstance(model, nn.Module) or not callable(model)):
        raise TypeError("`model` of confirm should be a function that makes the network, as lambda: Network().")
    late = sorted((row for row in causes.rows if row.phase == "late"), key=lambda row: -abs(row.change))[:top]
    chosen = tuple(row.cause for row in late)
    if not chosen:
        raise ValueError(f"There is no cause to confirm. {causes}")
    worlds = populations(inputs, chosen)
    plain = Population("as it is", inputs.train, inputs.held_out)

    def trained(world: Population) -> list[dict[str, float]]:
        runs = (trained_in(inputs, world, seed, model, recipe) for seed in range(seeds))
        return [contrasts(inputs, world, run, causes.curve, sides) for run in runs]

    before = trained(plain)
    rows = []
    for cause in chosen:
        after = trained(worlds[cause])
        for phase in PHASES:
            changes = np.array([b[phase] - a[phase] for a, b in zip(before, after, strict=True)])
            half = student.ppf((1.0 + LEVEL) / 2.0, seeds - 1) * changes.std(ddof=1) / np.sqrt(seeds)
            middle = float(changes.mean())
            said = causes.of(cause, phase).change
            rows.append(Came(cause, phase, said, middle, middle - float(half), middle + float(half)))
    return Confirmed(causes.curve, seeds, tuple(rows))


def contrasts(
    inputs: Inputs, world: Population, run: Trajectory, curve: str, sides: tuple[int, int | None]
) -> dict[str, float]:
    """The contrast of a training in a population, early, middle and late by its own progress."""
    held = world.held_out
    share = np.bincount(held.codes, held.mass, len(inputs.groups))
    order = [run["loss"].coords["group"].values.tolist().index(group) for group in inputs.groups]
    pooled = run["loss"].values[:, order] @ (share / share.sum())
    own = run[curve].values[:, order]
    group, other = sides
    if other is None:
        weight = _denominators(inputs, held, curve)
        weight[group] = 0.0
        gaps = own[:, group] - own @ (weight / weight.sum())
    else:
        gaps = own[:, group] - own[:, other]
    end = int(np.argmin(pooled))
    progress = np.maximum.accumulate((pooled[0] - pooled) / max(float(pooled[0] - pooled[end]), 1e-12))
    progress[end:] = 1.0
    places = {phase: int(np.argmax(progress >= share)) for phase, share in PHASES.items() if share < 1.0}
    return {phase: float(gaps[places.get(phase, len(gaps) - 1)]) for phase in PHASES}


def _denominators(inputs: Inputs, rows: Rows, curve: str) -> np.ndarray:
    counted = rows.mass
    if curve in ("tpr", "fpr"):
        low, high = (0.0, 1.0) if inputs.kind == "binary" else inputs.classes
        yes = (rows.labels - low) / (high - low)
        counted = rows.mass * (yes if curve == "tpr" else 1.0 - yes)
    return np.bincount(rows.codes, counted, len(inputs.groups))


def trained_in(
    inputs: Inputs,
    world: Population,
    seed: int,
    model: Callable[[], nn.Module] | None = None,
    recipe: Recipe | None = None,
) -> Trajectory:
    """One training in one population; rows and labels are drawn by the seed, the same way in all populations."""
    recipe = _usual(inputs) if recipe is None else recipe
    x, held_x = inputs.train.x, inputs.held_out.x
    if model is None:  # a network of our own gets standardised columns; the user's own what the user gave
        seen = columns(x)
        x, held_x = seen.standardised(x), seen.standardised(held_x)
    outputs = inputs.train.labels.shape[1] if inputs.kind == "classes" else 1
    rng = np.random.default_rng(seed)
    batch = recipe.batch_size(len(x))
    count = int(np.clip(recipe.total_steps(len(x)) * batch, len(x), MOST_DRAWN))
    place = np.searchsorted(np.cumsum(world.train.mass / world.train.mass.sum()), rng.random(count), side="right")
    place = np.minimum(place, len(x) - 1)
    y = drawn_labels(inputs, world.train.labels[place], rng.random(count))
    data = GroupedData(x[place].astype(np.float32), y, _labels(inputs, world.train.codes[place]), groups=inputs.groups)
    torch.manual_seed(1000 + seed)
    network = small_network(x.shape[1], outputs) if model is None else model()
    watch = Watch(when=log_spaced(12))
    return train(network, data, judged(inputs, world.held_out, held_x), recipe, watch=watch, seed=seed)


def drawn_labels(inputs: Inputs, soft: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Labels drawn from soft ones."""
    if inputs.kind == "numbers" and not inputs.classes:
        return soft.astype(np.float32)
    if inputs.kind == "classes":
        return np.asarray((np.cumsum(soft, axis=1) < chance[:, None]).sum(axis=1).clip(max=soft.shape[1] - 1))
    low, high = (0.0, 1.0) if inputs.kind == "binary" else inputs.classes
    yes = chance < (soft - low) / (high - low)
    named = np.array(inputs.classes)
    if (named == np.round(named)).all():
        named = named.astype(int)
    return np.asarray(np.where(yes, named[1], named[0]))


def judged(inputs: Inputs, rows: Rows, x: np.ndarray) -> GroupedData:
    """The judging people of a population: each stands there once for every label, with the weight of that label."""
    x = x.astype(np.float32)
    if inputs.kind == "numbers" and not inputs.classes:
        data = GroupedData(x, rows.labels.astype(np.float32), _labels(inputs, rows.codes), groups=inputs.groups)
        return data.with_weights(rows.mass)
    if inputs.kind == "classes":
        shares = [rows.labels[:, place] for place in range(rows.labels.shape[1])]
    else:
        low, high = (0.0, 1.0) if inputs.kind == "binary" else inputs.classes
        yes = (rows.labels - low) / (high - low)
        shares = [1.0 - yes, yes]
    named = np.array(inputs.classes)
    if (named == np.round(named)).all():
        named = named.astype(int)
    parts = [np.flatnonzero(share > 0) for share in shares]
    place = np.concatenate(parts)
    y = np.concatenate([np.full(len(part), label) for part, label in zip(parts, named, strict=True)])
    mass = np.concatenate([rows.mass[part] * share[part] for part, share in zip(parts, shares, strict=True)])
    return GroupedData(x[place], y, _labels(inputs, rows.codes[place]), groups=inputs.groups).with_weights(mass)


def _labels(inputs: Inputs, codes: np.ndarray) -> list[Any]:
    return [inputs.groups[code] for code in codes.tolist()]


def _usual(inputs: Inputs) -> Recipe:
    losses = {"binary": Logistic(), "classes": CrossEntropy(), "numbers": Square()}
    return Recipe(partial(torch.optim.AdamW, lr=1e-3), steps=2000, batch=32, loss=losses[inputs.kind])
