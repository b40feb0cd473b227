"""Order of groups: two groups learnt one after the other, what is forgotten, and which should come last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run, whether
from tiltmeter_lab.shared.network_students import told
from tiltmeter_lab.shared.picture_groups import (
    FRESH,
    TURNED,
    UPRIGHT,
    WORDS,
    Source,
    at_hand,
    picture_groups,
)
from tiltmeter_lab.theory.one_after_the_other import better_order, forgetting, one_after_the_other

TITLE = "Groups one after the other: what is forgotten, and which should come last"
PAPER = "No published answer; the setting is that of Jain, Nobahari, Baratin and Sarao Mannelli (2024), solved here"
NEEDS: tuple[str, ...] = ()
#: Two geometries: in the first the rules for the population and for the worst group disagree.
PROBLEMS: dict[str, tm.theory.Mixture] = {
    "more data against more variance": tm.teacher_mixture(0.8, variance=(0.5, 1.5), overlap=0.5),
    "equal variances": tm.teacher_mixture(0.6, variance=(1.0, 1.0), overlap=0.3),
}
DURATIONS, LR = {"+": 15.0, "-": 10.0}, 0.1
ORDERS = {"+ then -": ("+", "-"), "- then +": ("-", "+")}


@dataclass(frozen=True)
class Setting:
    """`problems` random ones for the rules; d and seeds of the simulation; sizes of the networks on pictures.

    Contrasts and rates for the digits were chosen on other draws of pictures and networks than those that are judged
    here; those of Fashion-MNIST were taken over unseen.
    """

    problems: int = 300
    d: int = 500
    seeds: int = 60
    pictures: tuple[Source, ...] = ("digits", "fashion-mnist")
    contrast: tuple[float, float] = (0.7, 1.0)
    points: int = 1200
    held_out: int = 500
    width: int = 64
    steps: int = 500
    lr: float = 0.1
    network_seeds: int = 8


QUICK = Setting()
FULL = Setting(
    problems=2000,
    d=1000,
    seeds=300,
    pictures=("fashion-mnist",),
    points=20000,
    held_out=4000,
    width=256,
    steps=4000,
    network_seeds=20,
)


def run(setting: Setting, keep: Keep) -> Runs:
    """Rules on random problems; both orders in theory and simulated; networks on pictures, group after group."""
    found = {"random problems": keep("random problems", partial(_rules, setting))}
    times = np.unique(np.concatenate([np.geomspace(0.1, 25.0, 40), [10.0, 15.0, 25.0]]))
    for problem_name, problem in PROBLEMS.items():
        for name, order in ORDERS.items():
            sgd = tm.SGD(lr=LR, proportions=tm.schedules.in_turn({group: DURATIONS[group] for group in order}))
            key = f"{problem_name}, {name}"
            found[f"theory, {key}"] = keep(
                f"theory, {key}", partial(tm.predict, problem, sgd, times, ("loss", "error", "risk"))
            )
            made = partial(
                tm.simulate,
                problem,
                sgd,
                [10.0, 15.0, 25.0],
                setting.d,
                setting.seeds,
                curves=("loss", "error"),
                method=tm.theory.Chain(progress=False),
            )
            found[f"simulation, {key}"] = keep(f"simulation, {key}", made)
    for source in at_hand(setting.pictures):
        for first, then in ((UPRIGHT, TURNED), (TURNED, UPRIGHT)):
            key = f"networks on {source}, {first} then {then}"
            found[key] = keep(key, partial(_networks, setting, source, first, then))
    return found


def _rules(setting: Setting) -> tm.Trajectory:
    """For random problems at a small learning rate: does each rule name the better order?"""
    rng, rows = np.random.default_rng(0), list[tuple[bool, ...]]()
    while len(rows) < setting.problems:
        rho, T, D = rng.uniform(0.1, 0.9), rng.uniform(-0.95, 0.95), np.exp(rng.uniform(-1.6, 1.4, 2))
        mass = np.array([rho, 1.0 - rho]) * D
        if abs(mass[0] / mass[1] - 1.0) < 0.02 or abs(D[0] / D[1] - 1.0) < 0.02:
            continue  # at a finite learning rate the rules may fail where the groups are nearly equal
        problem = tm.teacher_mixture(rho, variance=(D[0], D[1]), overlap=T)
        best = better_order(problem, tm.SGD(lr=1e-4))
        left = forgetting(problem, tm.SGD(lr=1e-4), "+", "-")
        rows.append((
            best.last_for_risk == "+-"[int(mass.argmax())], best.last_for_worst == "+-"[int(D.argmax())],
            left.worse_than_untrained == (left.loss > 0.5), left.loss > 0.5,
        ))  # fmt: skip
    kinds = ["population", "worst group", "critical overlap", "worse than untrained"]
    coords = {"time": [0.0], "problem": np.arange(len(rows)), "kind": kinds}
    right = xr.DataArray(np.array([rows], dtype=float), dims=("time", "problem", "kind"), coords=coords)
    return tm.Trajectory({"right": right}, "t", tm.record.Origin("theory of random problems"))


def _networks(setting: Setting, source: Source, first: str, then: str) -> tm.Trajectory:
    """Networks that see pictures of the one group, then of the other; the clock runs through both phases."""

    data, held_out = picture_groups(source, 0.8, setting.contrast, setting.points, setting.held_out)
    inputs = int(np.prod(data.x.shape[1:]))
    recipe = tm.Recipe(lr=setting.lr, steps=setting.steps, batch=32, loss=tm.losses.CrossEntropy())
    alone = {name: data.take(data.of_group(name)) for name in (first, then)}
    few = held_out.take(range(0, len(held_out), max(1, len(held_out) // 100)))

    def make() -> Any:
        model = tm.modules.mlp(inputs, (setting.width,), 10)
        tm.train(model, alone[first], few, recipe, watch=tm.Watch(when=tm.record.log_spaced(1)))
        return model

    seeds = range(FRESH, FRESH + setting.network_seeds)
    return told(
        tm.ensemble(make, alone[then], held_out, recipe, watch=tm.Watch(when=tm.record.log_spaced(8)), seeds=seeds),
        "network",
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The rules, the closed form against simulation, and both orders on pictures."""
    right = runs["random problems"]["right"].isel(time=0)
    total = int(right.sizes["problem"])
    found = [
        Claim(sentence, float(right.sel(kind=kind).mean()), f"share of {total} random problems where it does", 1.0)
        for kind, sentence in (
            ("population", "The population is better off with the group of larger share times variance last"),
            ("worst group", "The worst group is better off with the group of larger variance last"),
            ("critical overlap", "Below the critical overlap, and only there, a group ends worse than never learnt"),
        )
    ]
    worst, seeds = 0.0, 1
    for problem_name, problem in PROBLEMS.items():
        for name, order in ORDERS.items():
            loss = runs[f"simulation, {problem_name}, {name}"]["loss"]
            seeds = loss.sizes["seed"]
            closed = one_after_the_other(problem, tm.SGD(lr=LR), {group: DURATIONS[group] for group in order}).loss
            last = loss.isel(time=-1)
            error = last.std("seed", ddof=1) / np.sqrt(seeds)
            z = [(float(last.mean("seed").sel(group=g)) - closed[g]) / float(error.sel(group=g)) for g in "+-"]
            worst = max(worst, *map(abs, z))
    found.append(
        Claim("Simulated losses after both phases are those of the closed form", worst,
              "largest deviation in standard errors", 4.0, rule="at most", error=1.0, seeds=seeds)
    )  # fmt: skip
    return (*found, *(claim for source in WORDS for claim in _on_pictures(runs, source)))


def _on_pictures(runs: Runs, source: Source) -> list[Claim]:
    """Upright: more data, less contrast; turned: less data, more contrast."""
    on = f"Networks on {WORDS[source]}"
    sentences = (
        f"{on}: the population is better off with the group of larger share times variance last",
        f"{on}: the worst group is better off with the group of larger variance last",
        f"{on}: the group learnt first ends worse than never learnt",
    )
    if f"networks on {source}, {UPRIGHT} then {TURNED}" not in runs:
        return [not_run(sentence, "Needs the pictures.") for sentence in sentences]
    ends = {
        last: runs[f"networks on {source}, {first} then {last}"]["loss"].isel(time=-1)
        for first, last in ((UPRIGHT, TURNED), (TURNED, UPRIGHT))
    }
    seeds = ends[TURNED].sizes["seed"]
    risk = {last: 0.8 * end.sel(group=UPRIGHT) + 0.2 * end.sel(group=TURNED) for last, end in ends.items()}
    worst = {last: end.max("group") for last, end in ends.items()}
    untrained = float(np.log(10.0))
    forgotten = min(float(ends[TURNED].sel(group=UPRIGHT).mean()), float(ends[UPRIGHT].sel(group=TURNED).mean()))

    def difference(values: dict[str, Any], better: str, other: str) -> tuple[float, float]:
        gap = values[other].values - values[better].values
        return float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(seeds))

    # In the theory's terms upright has the larger share times variance and turned the larger variance.
    (pop, pop_error), (low, low_error) = difference(risk, UPRIGHT, TURNED), difference(worst, TURNED, UPRIGHT)
    return [
        Claim(sentences[0], pop,
              "risk with the other last minus risk", 0.0, error=pop_error, seeds=seeds, safe=False),
        Claim(sentences[1], low,
              "worst loss with the other last minus worst loss", 0.0, error=low_error, seeds=seeds, safe=False),
        whether(sentences[2], forgotten > untrained,
                f"does its loss exceed that of an untrained network, {untrained:.2f}",
                f"The less forgotten of the two has {forgotten:.2f}.", seeds=seeds, safe=False),
    ]  # fmt: skip


def pictures(runs: Runs) -> dict[str, Any]:
    """Losses of both groups through both phases, in both orders."""
    from tiltmeter_lab.shared.pictures import lines

    charts = {}
    for problem_name in PROBLEMS:
        points = []
        for name in ORDERS:
            loss = runs[f"theory, {problem_name}, {name}"]["loss"]
            points += [
                (float(t), float(loss.sel(time=t, group=g)), f"{g}, {name}") for g in "+-" for t in loss.time.values
            ]
        charts[f"Losses of groups in turn: {problem_name}"] = lines(points, "t = steps/d", "loss", "group and order")
    return charts
