"""Warm start: what prior knowledge does to crossings, exactly; and pre-trained networks on pictures."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run, whether
from tiltmeter_lab.named.bias_crossing import centred
from tiltmeter_lab.shared.lead import changes, claim, leaders
from tiltmeter_lab.shared.network_students import told
from tiltmeter_lab.shared.picture_groups import FRESH, WORDS, Source, at_hand, picture_groups
from tiltmeter_lab.theory.pretraining import critical_length

TITLE = "Warm start: two crossings below a critical length of irrelevant pre-training, none above"
PAPER = "No published answer; the setting is that of Jain, Nobahari, Baratin and Sarao Mannelli (2024), solved here"
NEEDS: tuple[str, ...] = ()
#: What was learnt before: nothing, one group alone, or labels that have nothing to do with this task.
BEFORE = ("nothing", "- alone", "+ alone", "something unrelated")
#: Squared lengths of irrelevant pre-training, in units of the critical one, and the crossings that theory says.
LENGTHS = {"no length": (0.0, 1), "below": (0.6, 2), "above": (2.5, 0)}
LR = 0.1


@dataclass(frozen=True)
class Setting:
    """`problems` random starts for the bound; d and seeds of the simulation; sizes of the networks on pictures.

    Contrasts, rates and lengths for the digits were chosen on other draws of pictures and networks than those that are
    judged here; those of Fashion-MNIST were taken over unseen.
    """

    problems: int = 200
    d: int = 1000
    seeds: int = 200
    pictures: tuple[Source, ...] = ("digits", "fashion-mnist")
    contrast: tuple[float, float] = (0.4, 1.6)
    points: int = 1200
    held_out: int = 500
    width: int = 64
    before: tuple[int, int, int] = (0, 1000, 6000)
    steps: int = 1500
    lr: float = 0.05
    network_seeds: int = 4


QUICK = Setting()
FULL = Setting(
    problems=2000, seeds=1000, pictures=("fashion-mnist",), points=20000, held_out=4000, width=256,
    before=(0, 1000, 20000), steps=6000, network_seeds=20,
)  # fmt: skip


def run(setting: Setting, keep: Keep) -> Runs:
    """The linear student from different starts, in theory and simulated; networks pre-trained on another task."""
    problem, times = centred(), np.geomspace(0.01, 400.0, 400)
    found = {"random starts": keep("random starts", partial(_random_starts, setting))}
    for name in BEFORE:
        warm = tm.SGD(lr=LR, start=learnt(name))
        found[f"theory, {name}"] = keep(f"theory, {name}", partial(tm.predict, problem, warm, times, ("loss",)))
    critical = critical_length(problem, tm.SGD(lr=LR)).length
    evaluations = np.concatenate([np.arange(0.1, 1.0, 0.1), np.arange(1.0, 10.0, 0.5), [20.0, 40.0]])
    for name, (share, _) in LENGTHS.items():
        warm = tm.SGD(lr=LR, start=tm.theory.starts.Overlaps(Q=share * critical))
        found[f"theory, {name}"] = keep(f"theory, {name}", partial(tm.predict, problem, warm, times, ("loss",)))
        made = partial(
            tm.simulate,
            problem,
            warm,
            evaluations,
            setting.d,
            setting.seeds,
            curves=("loss",),
            method=tm.theory.Chain(progress=False),
        )
        found[f"simulation, {name}"] = keep(f"simulation, {name}", made)
    for source in at_hand(setting.pictures):
        for steps in setting.before:
            key = f"networks on {source}, {steps}"
            found[key] = keep(key, partial(_networks, setting, source, steps))
    return found


def learnt(name: str) -> tm.theory.starts.Start:
    """Where the linear student ends after the first task, in overlaps with the groups of the second."""
    if name == "nothing":
        return tm.theory.starts.Zero()
    if name == "something unrelated":
        return tm.theory.starts.Overlaps(Q=1.0)
    only: dict[Hashable, Any] = {"+": 0.0, "-": 0.0, name[0]: 1.0}
    end = tm.theory.asymptotes(centred(), tm.SGD(lr=LR, proportions=only))

    def along(curve: str) -> dict[Hashable, Any]:
        return {group: float(end[curve].sel(group=group)) for group in "+-"}

    return tm.theory.starts.Overlaps(M=along("M"), R=along("R"), Q=float(end["Q"]))


def _random_starts(setting: Setting) -> tm.Trajectory:
    """For random centred problems and starts: the crossings counted, the bound on them, and whether it says odd."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(setting.problems):
        rho, T = rng.uniform(0.1, 0.9), rng.uniform(-0.99, 0.99)
        D = np.exp(rng.uniform(np.log(0.2), np.log(4.0), 2))
        p = np.array([rho, 1.0 - rho])
        lr = float(rng.uniform(0.01, 0.95) * 2.0 * (p @ D) / (p @ D**2))
        w = rng.normal(size=2) * rng.choice([0.3, 1.0, 2.0])
        R = np.array([w[0], T * w[0] + np.sqrt(1.0 - T**2) * w[1]])
        start = tm.theory.starts.Overlaps(R={"+": float(R[0]), "-": float(R[1])}, Q=float(w @ w + rng.exponential(0.5)))
        problem, sgd = tm.teacher_mixture(rho, variance=(D[0], D[1]), overlap=T), tm.SGD(lr=lr, start=start)
        loss = tm.predict(problem, sgd, np.append(0.0, np.geomspace(1e-4, 60.0, 1000) / lr), ("loss",))["loss"].values
        gap = loss[:, 0] - loss[:, 1]
        sign = np.sign(np.where(np.abs(gap) > 1e-11, gap, 0.0))
        sign = sign[sign != 0]
        bound = tm.theory.crossing_bound(problem, sgd)
        rows.append((int((sign[1:] != sign[:-1]).sum()), bound.most, int(bound.odd)))
    counts = xr.DataArray(
        np.array([rows], dtype=float), dims=("time", "problem", "kind"),
        coords={"time": [0.0], "problem": np.arange(len(rows)), "kind": ["counted", "most", "odd"]},
    )  # fmt: skip
    return tm.Trajectory({"crossings": counts}, "t", tm.record.Origin("theory of random starts"))


def _networks(setting: Setting, source: Source, before: int) -> tm.Trajectory:
    """Networks that first learn labels that have nothing to do with the pictures, then the classes of two groups."""
    from torch import nn

    data, held_out = picture_groups(source, 0.8, setting.contrast, setting.points, setting.held_out)
    inputs = int(np.prod(data.x.shape[1:]))
    names = [data.groups[code] for code in data.codes]
    shuffled = tm.GroupedData(data.x, np.random.default_rng(FRESH).permutation(data.y), names, groups=data.groups)
    recipe = tm.Recipe(lr=setting.lr, steps=setting.steps, batch=32, loss=tm.losses.CrossEntropy())

    def make() -> Any:
        model = tm.modules.mlp(inputs, (setting.width,), 10)
        for parameter in model[-1].parameters():  # random answers would favour the fainter group at the start
            nn.init.zeros_(parameter)
        if before:
            few = shuffled.take(range(0, len(shuffled), max(1, len(shuffled) // 200)))
            tm.train(model, shuffled, few, replace(recipe, steps=before), watch=tm.Watch(when=tm.record.log_spaced(1)))
        return model

    seeds = range(FRESH, FRESH + setting.network_seeds)
    return told(
        tm.ensemble(make, data, held_out, recipe, watch=tm.Watch(when=tm.record.log_spaced(8)), seeds=seeds), "network"
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """How many crossings, from which start: theory, simulation, random starts, networks."""
    counts = runs["random starts"]["crossings"].isel(time=0)
    counted, most, odd = (counts.sel(kind=kind) for kind in ("counted", "most", "odd"))
    broken = int(((counted > most) | (counted % 2 != odd)).sum())
    twice, total = int((counted == 2).sum()), int(counts.sizes["problem"])
    seeds = len(runs["simulation, below"].origin.seeds)
    found = [
        Claim("From any start, the number of crossings keeps to its bound and parity", broken,
              f"violations in {total} random problems and starts", 0.0, f"{twice} of them cross twice.",
              rule="at most"),
    ]  # fmt: skip
    for kind in ("theory", "simulation"):
        told_ = [f"{name}: {claim(runs[f'{kind}, {name}'])}" for name in LENGTHS]
        right = [len(changes(runs[f"{kind}, {name}"])) == count for name, (_, count) in LENGTHS.items()]
        found.append(
            whether(
                f"Irrelevant pre-training: one crossing without, two below the critical length, none above ({kind})",
                all(right), "are the counts 1, 2 and 0", " ".join(told_), seeds=1 if kind == "theory" else seeds,
                safe=kind == "theory",
            )
        )  # fmt: skip
    found += _first_task(runs)
    return (*found, *(_on_pictures(runs, source) for source in WORDS))


def _on_pictures(runs: Runs, source: Source) -> Claim:
    sentence = (
        f"Networks on {WORDS[source]}: one crossing without, two after short pre-training on shuffled labels, none "
        "after long"
    )
    nets = {name: run for name, run in runs.items() if name.startswith(f"networks on {source}")}
    if not nets:
        return not_run(sentence, "Needs the pictures.")
    shown = {name.split(", ")[1]: tm.leaders(run, "loss") for name, run in nets.items()}
    return whether(
        sentence, [len(one.changes) for one in shown.values()] == [1, 2, 0], "are the counts 1, 2 and 0",
        " ".join(f"After {steps} steps: {led.headline.line}" for steps, led in shown.items()),
        seeds=len(next(iter(nets.values())).origin.seeds), safe=False,
    )  # fmt: skip


def _first_task(runs: Runs) -> list[Claim]:
    """Who leads first, and whether anything of the first task is left, in the exact theory."""
    ends = {}
    for name in BEFORE:
        last = runs[f"theory, {name}"]["loss"].isel(time=-1)
        ends[name] = float(last.sel(group="+") - last.sel(group="-"))
    return [
        Claim("The group learnt before leads at first",
              float(np.mean([leaders(runs[f"theory, {group} alone"]).startswith(group) for group in "+-"])),
              "share of the two groups for which it does", 1.0,
              " ".join(f"After {name}: {claim(runs[f'theory, {name}'])}" for name in BEFORE)),
        Claim("Nothing of the first task is left in the end", max(abs(ends[name] - ends["nothing"]) for name in BEFORE),
              "largest change of the final gap in loss by what was learnt before", 1e-6, rule="at most"),
    ]  # fmt: skip


def pictures(runs: Runs) -> dict[str, Any]:
    """The gap over time by what was learnt before, in theory and on pictures."""
    from tiltmeter_lab.shared.pictures import lines

    charts = {}
    for title, names, clock in (
        ("Gap in loss after irrelevant pre-training (theory)", [f"theory, {name}" for name in LENGTHS], "t = steps/d"),
        ("Gap in loss after a first task (theory)", [f"theory, {name}" for name in BEFORE], "t = steps/d"),
        *(
            (f"Gap in loss after shuffled labels (networks on {WORDS[source]})", names, "steps")
            for source in WORDS
            if (names := [name for name in runs if name.startswith(f"networks on {source}")])
        ),
    ):
        points = []
        for name in names:
            loss = runs[name]["loss"]
            mean = loss.mean("seed") if "seed" in loss.dims else loss
            first, second = mean.coords["group"].values.tolist()
            gap = mean.sel(group=first) - mean.sel(group=second)
            points += [(float(t), float(gap.sel(time=t)), name.split(", ")[1]) for t in gap.time.values if t > 0]
        charts[title] = lines(points, clock, "loss of the first group minus the other", "before", log_x=True)
    return charts
