"""cures: interventions on four tasks, with the same grids, the same rule of selection and fresh draws for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.cell_tasks import Parts, Sizes, inputs_of_attribute, network, parts, plain_recipe
from tiltmeter_lab.shared.cure_cards import Chosen, card_of, chosen, interventions_of, label, needs_of
from tiltmeter_lab.shared.cure_grid import PLAIN, STRESS, Interventions, cure_grid
from tiltmeter_lab.shared.over_seeds import mean_and_error, share
from tiltmeter_lab.shared.two_held_out import both_held_out

TITLE = "Which intervention lowers the worst group's error on four tasks, if all are chosen by one rule"
PAPER = (
    "Idrissi, Arjovsky, Pezeshki and Lopez-Paz, Simple data balancing (2022); Yang, Zhang, Katabi and Ghassemi, "
    "Change is Hard (2023)"
)
NEEDS: tuple[str, ...] = ("mnist", "adult")
BALANCED = "balanced weights"
TASKS = ("toy", "digits", "coloured-mnist", "adult")


@dataclass(frozen=True)
class Setting:
    """Steps of every training, and how many settings of every intervention's grid are tried."""

    steps: int = 200
    settings: int = 1
    seeds: int = 5


QUICK = Setting()
FULL = Setting(steps=1000, settings=2)


def run(setting: Setting, keep: Keep) -> Runs:
    """Every task, intervention and setting: all seeds, each with its own data, weights and batches, the same for all
    interventions."""
    found: dict[str, tm.Trajectory] = {}
    for task in TASKS:
        grid: dict[str, tuple[Interventions | None, ...]] = {
            PLAIN: (None,),
            **cure_grid(setting.steps, inputs_of_attribute(task)),
        }
        made: dict[int, Parts] = {}
        for name, settings in grid.items():
            for number, laws in enumerate(settings[: setting.settings]):
                run_name = label(task, name, number)
                found[run_name] = keep(run_name, partial(_trained, task, laws, setting, made))
    return found


def _trained(task: str, laws: Interventions | None, setting: Setting, made: dict[int, Parts]) -> tm.Trajectory:
    """All seeds of one setting on one task; `made` keeps the data of the task."""

    runs = []
    for seed in range(setting.seeds):
        made.setdefault(seed, parts(task, seed, SIZES[task]))
        data = made[seed]
        recipe = replace(plain_recipe(setting.steps), interventions=interventions_of(laws))
        validation = data.validation if any(law.needs == "validation groups" for law in recipe.interventions) else None
        model = network(data.train.x.shape[1], seed)
        watch = tm.Watch(when=tm.record.log_spaced(6), points=False)
        one = tm.train(model, data.train, both_held_out(data), recipe, watch=watch, seed=seed, validation=validation)
        runs.append(one.replace({name: one[name] for name in ("loss", "error")}))
    return tm.stack(runs)


#: Of digits there are 1,797; of the others as many as one likes.
SIZES = {task: Sizes() if task == "digits" else Sizes(2000, 500, 500, 1000) for task in TASKS}


@dataclass(frozen=True, eq=False)
class _Facts:
    """The chosen setting of every intervention on every task, and the interventions by what they know."""

    best: Mapping[str, Mapping[str, Chosen]]
    cures: list[str]
    knowing: list[str]
    blind: list[str]

    @classmethod
    def of(cls, runs: Runs) -> _Facts:
        best = {task: chosen(runs, task) for task in TASKS}
        everywhere = [name for name in best[TASKS[0]] if all(name in one for one in best.values())]
        cures = [name for name in everywhere if name not in (PLAIN, STRESS)]
        needs = needs_of([name for name in best[TASKS[0]] if name != PLAIN])
        knowing = [name for name in cures if needs[name] == "training groups"]
        return cls(best, cures, knowing, [name for name in cures if needs[name] == "no groups"])

    @property
    def seeds(self) -> int:
        return len(self.best[TASKS[0]][PLAIN].worst)

    def change(self, task: str, name: str, other: str = PLAIN) -> tm.results.SeedMean:
        """The change of the worst group's error from one intervention to another."""
        return tm.results.SeedMean.over(self.best[task][name].worst - self.best[task][other].worst)

    @property
    def gain(self) -> dict[str, dict[str, float]]:
        return {task: {name: -self.change(task, name).value for name in self.cures} for task in TASKS}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """What the tables of others say about balancing, labels and ranks; and the control."""
    told = _Facts.of(runs)
    return (*_of_balancing(told), *_of_ranks(told), *_of_harm(told))


def _of_balancing(told: _Facts) -> tuple[Claim, ...]:
    """What balancing gains, and what knowing the groups is worth."""
    gain = told.gain
    balanced = {task: told.change(task, BALANCED) for task in TASKS}
    others = [name for name in told.knowing if name != BALANCED]
    beaten = [told.change(task, name, BALANCED).sign < 0 for task in TASKS for name in others]
    labels = [
        float(np.mean([gain[task][n] for n in told.knowing]) - np.mean([gain[task][n] for n in told.blind]))
        for task in TASKS
    ]
    return (
        Claim(
            "Balancing the groups lowers the worst group's error on every task",
            max(one.value + 2.0 * one.error for one in balanced.values()),
            "largest change of the worst group's error over tasks, two paired standard errors added",
            0.0,
            "; ".join(f"{task} {one:+.3f}" for task, one in balanced.items()) + ".",
            rule="at most",
            seeds=told.seeds,
            safe=False,
        ),
        Claim(
            "With the same labels hardly anything does better than balancing",
            share(beaten)[0],
            "share of the other interventions with training groups, over tasks, that are better by two paired "
            "standard errors",
            0.25,
            rule="at most",
            trials=len(beaten),
            seeds=told.seeds,
            safe=False,
        ),
        Claim(
            "Interventions that know the groups of training points gain more than interventions that know none",
            mean_and_error(labels)[0],
            "mean gain in the worst group's error, with training groups minus without, over tasks",
            0.0,
            error=mean_and_error(labels)[1],
            seeds=told.seeds,
            safe=False,
        ),
    )


def _of_ranks(told: _Facts) -> tuple[Claim, ...]:
    """Whether the same interventions are good on several tasks."""
    gain = told.gain
    alike = _agreement(gain, told.cures)
    first = {task: max(gain[task], key=gain[task].__getitem__) for task in TASKS}
    return (
        Claim(
            "No intervention is best on every task",
            float(len(set(first.values()))),
            "different interventions that come first",
            2.0,
            "; ".join(f"{task}: {name} ({gain[task][name]:+.3f})" for task, name in first.items())
            + ". The first of many is chosen by the points that judge it, so its gain is too good.",
            seeds=told.seeds,
            safe=False,
        ),
        Claim(
            "The ranking on one task says little about that on another",
            float(np.mean(alike)),
            "mean rank correlation of gains between two tasks",
            0.5,
            rule="at most",
            error=mean_and_error(alike)[1],
            seeds=told.seeds,
            safe=False,
        ),
    )


def _of_harm(told: _Facts) -> tuple[Claim, ...]:
    """Who pays for a gain, and the control."""
    pays = [_pays(told.best[task], name) for task in TASKS for name in told.cures if told.change(task, name).sign < 0]
    stress = np.mean([told.best[task][STRESS].worst - told.best[task][PLAIN].worst for task in TASKS], axis=0)
    return (
        Claim(
            "A gain of the worst group is paid by another group",
            share(pays)[0],
            f"share of {len(pays)} shown gains in which some group is shown to be worse off",
            0.5,
            trials=len(pays),
            seeds=told.seeds,
            safe=False,
        ),
        Claim(
            "Control: data with a stronger bias make the worst group worse",
            mean_and_error(stress)[0],
            "mean change of the worst group's error over tasks",
            0.0,
            error=mean_and_error(stress)[1],
            seeds=told.seeds,
            safe=False,
        ),
    )


def _pays(best: Mapping[str, Chosen], name: str) -> bool:
    """Whether some group is worse off than in plain training by more than two paired standard errors."""
    changes = best[name].errors - best[PLAIN].errors
    return any(tm.results.SeedMean.over(one).sign > 0 for one in changes)


def _agreement(gain: Mapping[str, Mapping[str, float]], names: list[str]) -> list[float]:
    from scipy.stats import spearmanr

    return [
        float(spearmanr([gain[a][n] for n in names], [gain[b][n] for n in names]).statistic)
        for a, b in combinations(gain, 2)
    ]


def tables(runs: Runs) -> Mapping[str, tm.results.page.Table]:
    """The worst group's error of every intervention on every task, with what it needs and costs."""
    best = {task: chosen(runs, task) for task in TASKS}
    cards = {task: {row.name: row for row in card_of(best[task]).rows} for task in TASKS}
    names = list(best[TASKS[0]])
    needs = needs_of(names)
    rows = []
    for name in names:
        cost = next(card[name].cost for card in cards.values() if name in card)
        rows.append((name, needs[name], f"{cost:.3g}x", *(_cell(best[task], cards[task], name) for task in TASKS)))
    title = (
        "Worst group's error at the chosen evaluation, and in brackets the gap between groups over training; lower "
        "or higher "
        "than in plain training by two paired standard errors"
    )
    return {title: tm.results.page.Table(("law", "needs", "cost", *TASKS), rows)}


def _cell(best: Mapping[str, Chosen], card: Mapping[str, tm.results.Score], name: str) -> str:
    if name not in best:
        return "does not apply"
    if name not in card:
        return f"{tm.results.SeedMean.over(best[name].worst):.3f}, diverged later"
    row = card[name]
    words = [{-1: "lower", 1: "higher"}.get(row.worst_change.sign, ""), "levels down" if row.levels_down else ""]
    return ", ".join([f"{row.worst:.3f} ({row.gap_area.value:.3f})", *filter(None, words)])


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The change of the worst group's error by intervention and task."""
    from tiltmeter_lab.shared.intervention_changes import intervention_changes

    marks = []
    for task in TASKS:
        best = chosen(runs, task)
        for name, one in best.items():
            if name != PLAIN:
                marks.append((task, name, *mean_and_error(one.worst - best[PLAIN].worst)))
    return {"Change of the worst group's error": intervention_changes(marks, "change of the worst group's error")}
