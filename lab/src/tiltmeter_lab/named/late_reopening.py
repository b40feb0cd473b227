"""late-reopening: balanced training on a fixed set: the gap closes first and opens again once points are memorised."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.cell_tasks import Sizes, network, parts, plain_recipe
from tiltmeter_lab.shared.over_seeds import mean_and_error
from tiltmeter_lab.shared.seed_scatter import in_errors, told
from tiltmeter_lab.shared.two_held_out import CHOOSE, JUDGE, both_held_out, evaluated

TITLE = "Balanced training closes the gap early; on a fixed set memorisation opens it again"
PAPER = "Sagawa, Raghunathan, Koh and Liang, Overparameterization exacerbates spurious correlations (2020)"
NEEDS: tuple[str, ...] = ()
TASKS = ("toy", "digits")
INTERVENTIONS: dict[str, tm.interventions.GroupIntervention | None] = {
    "plain": None,
    "balanced": tm.interventions.Balanced(),
    "group DRO": tm.interventions.GroupDRO(0.01),
    "adjusted DRO": tm.interventions.GroupDRO(0.01, adjust=3.0),
}
#: Those that balance training losses; the adjustment asks for more than that.
BALANCING = ("balanced", "group DRO")
FRESH = "toy balanced, fresh points"
TIMES = np.geomspace(0.02, 3e4, 160)
LINEAR: dict[str, dict[Hashable, Any] | None] = {"plain": None, "balanced": {"+": 0.5 / 0.8, "-": 0.5 / 0.2}}
SAMPLES = {"few": 0.5, "many": 10.0}


@dataclass(frozen=True)
class Setting:
    """Steps of all networks; the control sees every point once."""

    steps: int = 1500
    seeds: int = 4


QUICK, FULL = Setting(), Setting(steps=20_000, seeds=12)


def run(setting: Setting, keep: Keep) -> Runs:
    """The exact linear student on few and on many examples, plain and balanced; networks; and the control."""
    found = {}
    problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    for size, samples in SAMPLES.items():
        for name, weights in LINEAR.items():
            made = partial(tm.predict, problem, tm.Flow(1.0, weights=weights), TIMES, ("loss",), data=tm.Fixed(samples))
            found[f"linear {name}, {size}"] = keep(f"linear {name}, {size}", made)
    for task in TASKS:
        for name, law in INTERVENTIONS.items():
            found[f"{task} {name}"] = keep(f"{task} {name}", partial(_trained, task, law, setting, Sizes()))
    many = replace(Sizes(), train=setting.steps * 64)
    found[FRESH] = keep(FRESH, partial(_trained, "toy", INTERVENTIONS["balanced"], setting, many))
    return found


def _trained(
    task: str, law: tm.interventions.GroupIntervention | None, setting: Setting, sizes: Sizes
) -> tm.Trajectory:
    """All seeds; looks at held-out points, and at training points (at most as many as there usually are)."""

    runs = []
    for seed in range(setting.seeds):
        data = parts(task, seed, sizes)
        both = both_held_out(replace(data, choose=data.train.take(np.arange(min(len(data.train), Sizes().train)))))
        recipe = replace(plain_recipe(setting.steps), interventions=() if law is None else (law,))
        watch = tm.Watch(when=tm.record.log_spaced(12), points=False)
        one = tm.train(network(data.train.x.shape[1], seed), data.train, both, recipe, watch=watch, seed=seed)
        runs.append(one.replace({name: one[name] for name in ("loss", "error")}))
    return tm.stack(runs)


def worst_and_gap(run: tm.Trajectory, kind: str = JUDGE, curve: str = "loss") -> tuple[np.ndarray, np.ndarray]:
    """The worst group, and its distance from the best one, each (time, seed)."""
    values = evaluated(run, kind)[curve].transpose("time", "group", "seed").values
    return values.max(1), np.ptp(values, axis=1)


def reopened(values: np.ndarray) -> np.ndarray:
    """How far the last evaluation of every seed lies above the one that is best on average over the *other* seeds.

    >>> reopened(np.array([[2.0, 2.0, 2.0], [1.0, 1.0, 1.0], [1.5, 1.0, 2.0]]))
    array([0.5, 0. , 1. ])

    The evaluation is chosen without the seed that judges it, so chance alone gives 0 on average, or less.
    """
    seeds = values.shape[1]
    best = [int(np.delete(values, seed, axis=1).mean(1).argmin()) for seed in range(seeds)]
    return np.array([values[-1, seed] - values[best[seed], seed] for seed in range(seeds)])


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The exact case, networks, what the adjustment does, and the control."""
    exact = {size: _effect(runs, size) for size in SAMPLES}
    cells = [f"{task} {name}" for task in TASKS for name in BALANCING]
    seeds = runs[cells[0]]["loss"].sizes["seed"]
    rise = {cell: reopened(worst_and_gap(runs[cell])[0]) for cell in cells}
    gap = {cell: reopened(worst_and_gap(runs[cell])[1]) for cell in cells}
    fitted = max(float(worst_and_gap(runs[cell], CHOOSE, "error")[0][-1].mean()) for cell in cells)
    less = np.mean(
        [
            reopened(worst_and_gap(runs[f"{task} group DRO"])[1])
            - reopened(worst_and_gap(runs[f"{task} adjusted DRO"])[1])
            for task in TASKS
        ],
        axis=0,
    )
    fresh = reopened(worst_and_gap(runs[FRESH])[0])
    wrong = {cell: reopened(worst_and_gap(runs[cell], curve="error")[0]) for cell in cells}
    return (
        Claim(
            "Exact: with fewer examples than inputs, balancing has no effect in the end",
            exact["few"][1] / exact["few"][0],
            "difference of the gap from that of plain training at the end, relative to its largest",
            0.01,
            f"The largest is {exact['few'][0]:.3f}.",
            rule="at most",
        ),
        Claim(
            "Control: with many examples its effect stays",
            exact["many"][1] / exact["many"][0],
            "the same for ten examples per input",
            0.5,
        ),
        Claim(
            "Networks fit the training points of every group",
            fitted,
            "largest last training error of a worst group",
            0.02,
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The held-out loss of the worst group rises again under balancing and under group DRO",
            min(in_errors(one) for one in rise.values()),
            "smallest rise from the best evaluation to the last, in standard errors",
            2.0,
            told(rise),
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
        Claim(
            "So does the gap between groups",
            min(in_errors(one) for one in gap.values()),
            "smallest rise from the smallest gap to the last, in standard errors",
            2.0,
            told(gap),
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
        Claim(
            "And the error of the worst group",
            min(in_errors(one) for one in wrong.values()),
            "smallest rise from the best evaluation to the last, in standard errors",
            2.0,
            told(wrong),
            seeds=seeds,
            safe=False,
            error=1.0,
            neutral=0.0,
        ),
        Claim(
            "An adjustment for the size of groups opens the gap less",
            mean_and_error(less)[0],
            "rise of the gap under group DRO minus that with the adjustment, mean of both tasks",
            0.0,
            error=mean_and_error(less)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Control: with fresh points the worst group's loss does not rise",
            in_errors(fresh),
            "rise in standard errors",
            2.0,
            told({FRESH: fresh}),
            rule="at most",
            seeds=seeds,
            safe=False,
        ),
    )


def _effect(runs: Runs, size: str) -> tuple[float, float]:
    """What balancing does to the gap of the linear student: at most, and in the end."""
    gaps = [runs[f"linear {name}, {size}"]["loss"].diff("group").values[:, 0] for name in LINEAR]
    effect = abs(gaps[1] - gaps[0])
    return float(effect.max()), float(effect[-1])


def pictures(runs: Runs) -> Mapping[str, Any]:
    """The gap of the linear student and of networks over training."""
    from tiltmeter_lab.shared.pictures import lines

    exact = []
    for size in SAMPLES:
        for name in LINEAR:
            loss = runs[f"linear {name}, {size}"]["loss"]
            gap = loss.sel(group="-") - loss.sel(group="+")
            exact += [
                (float(t), float(g), f"{name}, {size} examples")
                for t, g in zip(loss.coords["time"].values, gap.values, strict=True)
            ]
    drawn = {}
    for task in TASKS:
        rows = []
        names = [*(f"{task} {name}" for name in INTERVENTIONS), *((FRESH,) if task == "toy" else ())]
        for name in names:
            gap = worst_and_gap(runs[name])[1].mean(1)
            time = runs[name]["loss"].coords["time"].values
            label = name.removeprefix(f"{task} ")
            rows += [(float(t), float(g), label) for t, g in zip(time, gap, strict=True) if t > 0]
        drawn[f"Gap in held-out loss, {task}"] = lines(
            rows, "step", "worst minus best group's loss", "training", log_x=True, log_y=True
        )
    return {
        "Gap in loss, linear student": lines(exact, "t", "loss of - minus loss of +", "training", log_x=True),
        **drawn,
    }
