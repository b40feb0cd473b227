"""Several classes: class crossings that groups hide, classes in conflict, similar classes; exactly, and on pictures."""

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
from tiltmeter_lab.shared.picture_groups import FRESH, TURNED, UPRIGHT, WORDS, Source, at_hand, picture_groups
from tiltmeter_lab.shared.similar_classes import class_similarity, similar_class_claims

TITLE = "Several classes: crossings that groups hide, conflict between groups, similar classes"
PAPER = "No published answer; the setting is that of Jain, Nobahari, Baratin and Sarao Mannelli (2024), solved here"
NEEDS: tuple[str, ...] = ()

#: The problem whose first two classes cross between the groups, which themselves do not.
HIDDEN = partial(tm.theory.class_mixture, 3, 0.7, (0.3, 1.4), 0.5, class_bias=(-0.24, -0.24, 0.3))
#: The first two classes of the minority look like the second and the first of the majority, or like their own.
CONFLICT = {
    name: partial(tm.theory.class_mixture, 3, 0.8, (0.6, 1.4), overlap=0.9, swapped=swap)
    for name, swap in (("conflict", True), ("harmony", False))
}
SIMILAR = {
    name: partial(tm.theory.class_mixture, 3, 0.8, overlap=0.5, similarity=s)
    for name, s in (("unlike", 0.0), ("alike", 0.9))
}
CHANCE = 1.0 / 3.0
PAIR = (4, 9)


@dataclass(frozen=True)
class Setting:
    """`problems` random ones for the counts; d and seeds of the simulations; sizes of the networks on pictures.

    Sizes and rates for the digits were chosen on other draws of pictures and networks than those that are judged here;
    those of Fashion-MNIST were taken over unseen.
    """

    problems: int = 200
    d: int = 400
    seeds: int = 16
    lr: float = 0.1
    pictures: tuple[Source, ...] = ("digits", "fashion-mnist")
    points: int = 1200
    held_out: int = 500
    width: int = 64
    steps: int = 600
    network_lr: float = 0.05
    network_seeds: int = 8


QUICK = Setting()
FULL = Setting(
    problems=2000,
    d=1000,
    seeds=100,
    pictures=("fashion-mnist",),
    points=20000,
    held_out=4000,
    width=256,
    steps=4000,
    network_seeds=20,
)


def run(setting: Setting, keep: Keep) -> Runs:
    """Counts over random problems; theory and simulation of the named ones; networks on pictures."""
    found = {"random problems": keep("random problems", partial(_counts, setting))}
    times = np.geomspace(0.05, 120.0, 40)
    for name, make in (("hidden", HIDDEN), *CONFLICT.items(), *SIMILAR.items()):
        curves = ("loss", "class_loss") if name == "hidden" else ("loss", "class_loss", "error", "class_accuracy")
        sgd = tm.SGD(lr=setting.lr)
        found[f"theory, {name}"] = keep(f"theory, {name}", partial(tm.predict, make(), sgd, times, curves))
        made = partial(
            tm.simulate,
            make(),
            sgd,
            times[::3],
            setting.d,
            setting.seeds,
            curves=("loss", "class_loss"),
            method=tm.theory.Chain(progress=False),
        )
        found[f"simulation, {name}"] = keep(f"simulation, {name}", made)
    for source in at_hand(setting.pictures):
        found[f"similarity, {source}"] = keep(f"similarity, {source}", partial(_similarity, setting, source))
        for name, swap in (("plain", False), ("conflict", True)):
            key = f"networks on {source}, {name}"
            found[key] = keep(key, partial(_networks, setting, source, swap))
    return found


def random_problem(rng: np.random.Generator) -> tuple[tm.theory.ClassMixture, tm.SGD]:
    """Three classes in two centred groups, everything else at random."""
    rho, mixed, D = rng.uniform(0.2, 0.8), rng.uniform(-1.0, 1.0), np.exp(rng.uniform(-1.5, 1.2, 2))
    one, two = rng.normal(size=(2, 3, 4))
    teachers = {"+": dict(enumerate(one)), "-": dict(enumerate(mixed * one + np.sqrt(1.0 - mixed**2) * two))}
    bias = {g: dict(enumerate(0.5 * rng.normal(size=3))) for g in "+-"}
    p = np.array([rho, 1.0 - rho])
    lr = rng.uniform(0.05, 0.9) * 2.0 * (p @ D) / (p @ D**2)
    weight, variance = {"+": rho, "-": 1.0 - rho}, dict(zip("+-", D, strict=True))
    return tm.theory.ClassMixture(weight, variance, {g: np.zeros(4) for g in "+-"}, teachers, bias), tm.SGD(lr=lr)  # type: ignore[arg-type]


def _counts(setting: Setting) -> tm.Trajectory:
    """For every random problem: crossings of the groups, most of any class between groups, and within a group."""
    rng, rows = np.random.default_rng(0), []
    for _ in range(setting.problems):
        problem, sgd = random_problem(rng)
        times = np.geomspace(1e-3, 60.0, 400) / float(sgd.lr)  # type: ignore[arg-type]
        groups, classes = tm.theory.centred_class_losses(problem, sgd, times, tm.theory.Sobol(2**10))
        between = max(_changes(classes[:, 0, c] - classes[:, 1, c]) for c in range(3))
        within = max(
            _changes(classes[:, g, a] - classes[:, g, b]) for g in range(2) for a, b in ((0, 1), (0, 2), (1, 2))
        )
        rows.append((_changes(groups[:, 0] - groups[:, 1]), between, within))
    counts = xr.DataArray(
        np.array([rows], dtype=float), dims=("time", "problem", "kind"),
        coords={"time": [0.0], "problem": np.arange(len(rows)), "kind": ["groups", "class between groups", "classes"]},
    )  # fmt: skip
    return tm.Trajectory({"crossings": counts}, "t", tm.record.Origin("theory of random problems"))


def _changes(gap: np.ndarray) -> int:
    sign = np.sign(np.where(np.abs(gap) > 1e-10, gap, 0.0))
    sign = sign[sign != 0]
    return int((sign[1:] != sign[:-1]).sum())


def _similarity(setting: Setting, source: Source) -> tm.Trajectory:
    """How alike the mean pictures of the classes are, before anything is trained."""
    train, _ = picture_groups(source, 0.8, (0.5, 1.0), setting.points, setting.held_out)
    found = class_similarity(train, UPRIGHT).expand_dims(time=[0.0])
    return tm.Trajectory({"similarity": found}, "step", tm.record.Origin("mean pictures"))


def _networks(setting: Setting, source: Source, swap: bool) -> tm.Trajectory:
    """Networks of one hidden layer on pictures; with `swap` two classes of the minority have each other's label."""

    contrast, pair = ((1.0, 1.0), PAIR) if swap else ((0.5, 1.0), None)
    train, held_out = picture_groups(source, 0.8, contrast, setting.points, setting.held_out, not swap, pair)
    inputs = int(np.prod(train.x.shape[1:]))
    recipe = tm.Recipe(lr=setting.network_lr, steps=setting.steps, batch=32, loss=tm.losses.CrossEntropy())
    made, seeds = partial(tm.modules.mlp, inputs, (setting.width,), 10), range(FRESH, FRESH + setting.network_seeds)
    return told(
        tm.ensemble(made, train, held_out, recipe, watch=tm.Watch(when=tm.record.log_spaced(8)), seeds=seeds), "network"
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """What the theory says, whether simulations show it, and what networks on pictures do."""
    counts = runs["random problems"]["crossings"].isel(time=0)
    most = {str(kind): int(counts.sel(kind=kind).max()) for kind in counts.kind.values}
    quiet = (counts.sel(kind="groups") == 0) & (counts.sel(kind="class between groups") > 0)
    exact, measured = (
        tm.fairness.class_leaders(runs["theory, hidden"]),
        tm.fairness.class_leaders(runs["simulation, hidden"]),
    )
    seeds = len(runs["simulation, hidden"].origin.seeds)
    total = int(counts.sizes["problem"])
    found = [
        whether(
            "From zero, centred groups cross at most once, a class between them at most twice, classes of a group once",
            most["groups"] <= 1 and most["class between groups"] <= 2 and most["classes"] <= 1,
            f"is that so in all of {total} random problems",
            f"Most seen: {', '.join(f'{kind} {count}' for kind, count in most.items())}.",
            safe=True,
        ),
        Claim(
            "A class may cross between groups though the groups themselves do not",
            float(quiet.mean()), f"share of {total} random problems", 0.05,
        ),
        whether(
            "The simulated class crosses, too, and the groups do not",
            bool(measured.hidden) and not measured.groups.changes,
            "is a class shown to cross while the groups do not",
            f"Theory: {exact.same_class[0].headline.line} Simulation: {measured.same_class[0].headline.line} "
            f"Groups: {measured.groups.headline.line}",
            seeds=seeds, safe=True,
        ),
    ]  # fmt: skip
    found += _conflict(runs, seeds) + _similar(runs, seeds)
    for source in WORDS:
        found += _on_pictures(runs, source)
    return tuple(found)


def _conflict(runs: Runs, seeds: int) -> list[Claim]:
    accuracy = {name: runs[f"theory, {name}"]["class_accuracy"].isel(time=-1).sel(group="-") for name in CONFLICT}
    worst = float(accuracy["conflict"].sel({"class": [0, 1]}).max())
    plain = float(accuracy["harmony"].sel({"class": [0, 1]}).min())
    loss = runs["theory, conflict"]["loss"].sel(group="-").values
    gaps = []
    for name in CONFLICT:
        runs_ = runs[f"simulation, {name}"]["class_loss"].isel(time=-1)
        exact = runs[f"theory, {name}"]["class_loss"].sel(time=float(runs_.time), method="nearest")
        gaps.append(float((abs(runs_.mean("seed") - exact) / (runs_.std("seed", ddof=1) / np.sqrt(seeds))).max()))
    return [
        Claim("Conflict between groups sends classes of the minority below chance", worst,
              "accuracy of the swapped classes", CHANCE, f"Without conflict the worse of them has {plain:.3f}.",
              rule="at most"),
        whether("The loss of the minority in conflict passes through a minimum",
                bool(0 < loss.argmin() < len(loss) - 1), "does it fall first and rise then",
                f"Lowest {loss.min():.3f}, last {loss[-1]:.3f}.", safe=True),
        Claim("Simulated class losses are those of the theory", max(gaps), "largest deviation in standard errors", 4.0,
              rule="at most", seeds=seeds),
    ]  # fmt: skip


def _similar(runs: Runs, seeds: int) -> list[Claim]:
    def half(name: str, kind: str) -> np.ndarray:
        """The time at which each class of + has made half of its way in loss."""
        loss = runs[f"{kind}, {name}"]["class_loss"].sel(group="+")
        mean = loss.mean("seed") if "seed" in loss.dims else loss
        way = (mean - mean.isel(time=0)) / (mean.isel(time=-1) - mean.isel(time=0))
        times = np.log(mean.time.values)
        return np.array([np.exp(np.interp(0.5, way.sel({"class": c}).values, times)) for c in way["class"].values])

    ratios = {
        kind: half("alike", kind)[:2].mean() / half("unlike", kind)[:2].mean() for kind in ("theory", "simulation")
    }
    return [
        Claim("Similar classes are not learnt more slowly", float(ratios[kind]),
              f"time to half way, alike over unlike ({kind})", 1.05, rule="at most",
              seeds=1 if kind == "theory" else seeds, safe=kind == "theory")
        for kind in ("theory", "simulation")
    ]  # fmt: skip


def _on_pictures(runs: Runs, source: Source) -> list[Claim]:
    """The questions of the theory, asked of networks on one set of pictures."""
    on = f"Networks on {WORDS[source]}"
    sentences = (
        f"{on}: a class crosses between groups that do not",
        f"{on}: conflict sends classes of the minority below chance",
        f"{on}: similar classes are not learnt more slowly",
        f"{on}: similar classes end more confused",
    )
    if f"networks on {source}, plain" not in runs:
        return [not_run(sentence, "Needs the pictures.") for sentence in sentences]
    plain, conflict = (runs[f"networks on {source}, {name}"] for name in ("plain", "conflict"))
    seeds = len(plain.origin.seeds)
    found = tm.fairness.class_leaders(plain, "class_accuracy")
    crossing = [c for c, one in found.same_class.items() if one.changes]
    last = conflict["class_accuracy"].isel(time=-1).sel(group=TURNED)
    swapped = last.sel({"class": list(PAIR)})
    error = float(swapped.std("seed", ddof=1).max() / np.sqrt(seeds)) if seeds > 1 else None
    return [
        whether(sentences[0], bool(found.hidden), "does the accuracy of a class cross while the error does not",
                f"Groups: {found.groups.headline.line} Classes that cross: {crossing or 'none'}.",
                seeds=seeds, safe=False),
        Claim(sentences[1], float(swapped.mean("seed").max()), "accuracy of the swapped classes, chance 0.1", 0.1,
              f"The other classes of the minority: {float(last.drop_sel({'class': list(PAIR)}).mean()):.3f}.",
              rule="at most", error=error, seeds=seeds, safe=False),
        *similar_class_claims(runs[f"similarity, {source}"], plain, UPRIGHT, sentences[2:]),
    ]  # fmt: skip


def pictures(runs: Runs) -> dict[str, Any]:
    """Class losses of the hidden crossing, and the accuracies of classes in conflict."""
    from tiltmeter_lab.shared.pictures import lines

    loss = runs["theory, hidden"]["class_loss"]
    gap = loss.sel(group="+") - loss.sel(group="-")
    points = [
        (float(t), float(gap.sel({"time": t, "class": c})), f"class {c}")
        for c in gap["class"].values
        for t in gap.time.values
    ]
    whole = runs["theory, hidden"]["loss"]
    points += [
        (float(t), float(whole.sel(time=t, group="+") - whole.sel(time=t, group="-")), "groups")
        for t in whole.time.values
    ]
    accuracy = runs["theory, conflict"]["class_accuracy"].sel(group="-")
    swapped = [
        (float(t), float(accuracy.sel({"time": t, "class": c})), f"class {c}")
        for c in accuracy["class"].values
        for t in accuracy.time.values
    ]
    return {
        "A class crosses where groups do not": lines(
            points, "t = steps/d", "loss of + minus loss of -", "of", log_x=True
        ),
        "Classes of the minority in conflict": lines(swapped, "t = steps/d", "accuracy", "of", log_x=True),
    }
