"""Over-parametrisation: what more features do to each group, exactly; and on pictures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run
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
from tiltmeter_lab.theory.feature_sweep import feature_sweep
from tiltmeter_lab.theory.random_features import random_features

TITLE = "Over-parametrisation: the gap between groups grows while the worst group still improves"
PAPER = "Sagawa, Raghunathan, Koh and Liang (2020), who saw the worst group get worse with a spurious feature"
NEEDS: tuple[str, ...] = ()
SAMPLES, RIDGE = 2.0, 1e-5


@dataclass(frozen=True)
class Setting:
    """`features` per dimension in theory, `some` of them simulated; `widths` of networks on pictures.

    Sizes, noise and rates for the digits were chosen on other draws of pictures and networks than those that are judged
    here; those of Fashion-MNIST were taken over unseen.
    """

    features: tuple[float, ...] = tuple(float(f"{value:.3g}") for value in np.geomspace(0.2, 30.0, 40)) + (
        1.9,
        2.0,
        2.1,
    )
    some: tuple[float, ...] = (0.5, 5.0)
    d: int = 150
    seeds: int = 10
    pictures: tuple[Source, ...] = ("digits", "fashion-mnist")
    points: int = 600
    held_out: int = 500
    noise: float = 0.2
    widths: tuple[int, ...] = (4, 16, 64, 512)
    feature_counts: tuple[int, ...] = (30, 100, 300, 600, 1200, 3000)
    epochs: int = 60
    lr: float = 0.05
    network_seeds: int = 6


QUICK = Setting()
FULL = Setting(
    some=(0.5, 1.0, 5.0, 10.0), d=300, seeds=40, pictures=("fashion-mnist",), points=4000, held_out=4000,
    widths=(4, 8, 16, 64, 256, 2048), feature_counts=(100, 400, 1000, 2000, 4000, 8000, 20000), epochs=100,
    network_seeds=10,
)  # fmt: skip


def run(setting: Setting, keep: Keep) -> Runs:
    """Exact curves with and without weights; students of random features at finite d; pictures."""
    grid = sorted(set(setting.features))
    jobs = {
        "theory": partial(_theory, grid, None),
        "theory, weights": partial(_theory, grid, 4.0),
        "simulation": partial(_simulated, setting),
    }
    for source in at_hand(setting.pictures):
        jobs[f"random features of {source}"] = partial(features_of_pictures, setting, source)
        jobs[f"networks on {source}"] = partial(networks_on_pictures, setting, source)
    return {name: keep(name, job) for name, job in jobs.items()}


def _theory(grid: list[float], weight: float | None) -> tm.Trajectory:
    found = random_features(
        tm.theory.cases.centred_crossing().problem, grid, SAMPLES, RIDGE, None if weight is None else {"-": weight}
    )
    curves = {
        name: found[name].expand_dims(time=[0.0]) for name in ("loss", "error", "training_loss", "training_error")
    }
    return tm.Trajectory(curves, "t", tm.record.Origin("theory", settings={"weight of -": weight}))


def _simulated(setting: Setting) -> tm.Trajectory:
    """The same students at finite d, solved exactly: errors of both groups on new points."""
    from scipy.special import erf

    problem, d = tm.theory.cases.centred_crossing().problem, setting.d
    D, rho, T = problem.variance.values, float(problem.weight[0]), float(problem.gram[2, 3])
    teachers = np.zeros((2, d))
    teachers[:, 0], teachers[1, 1] = (1.0, T), np.sqrt(1.0 - T**2)
    errors = np.empty((1, 2, len(setting.some), setting.seeds))
    for seed in range(setting.seeds):
        for place, psi in enumerate(setting.some):
            rng = np.random.default_rng((seed, place))
            F = rng.normal(size=(round(psi * d), d)) / np.sqrt(d)
            g = (rng.random(round(SAMPLES * d)) > rho).astype(int)
            x = rng.normal(size=(len(g), d)) * np.sqrt(D[g])[:, None]
            Z, y = erf(x @ F.T / np.sqrt(2.0)), np.sign((x * teachers[g]).sum(1))
            theta = Z.T @ np.linalg.solve(Z @ Z.T / d + RIDGE * np.eye(len(g)), y) / d
            for k in range(2):
                new = rng.normal(size=(3000, d)) * np.sqrt(D[k])
                errors[0, k, place, seed] = np.mean((erf(new @ F.T / np.sqrt(2.0)) @ theta) * (new @ teachers[k]) < 0)
    coords = {"time": [0.0], "group": ["+", "-"], "features": list(setting.some), "seed": np.arange(setting.seeds)}
    curve = xr.DataArray(errors, dims=("time", "group", "features", "seed"), coords=coords)
    return tm.Trajectory(
        {"error": curve}, "t", tm.record.Origin("simulation", settings={"d": d}, seeds=tuple(range(setting.seeds)))
    )


def features_of_pictures(setting: Setting, source: Source) -> tm.Trajectory:
    """Random features of real pictures, some training labels wrong, ridge as good as none."""
    from scipy.special import erf

    train, held_out = picture_groups(source, 0.8, (0.5, 1.0), setting.points, setting.held_out)
    inputs = train.x.shape[1]
    errors = np.empty((1, 2, len(setting.feature_counts), setting.network_seeds))
    for seed in range(setting.network_seeds):
        rng = np.random.default_rng(FRESH + seed)
        y = np.where(rng.random(len(train)) < setting.noise, rng.integers(0, 10, len(train)), train.y).astype(int)
        for place, count in enumerate(setting.feature_counts):
            F = rng.normal(size=(count, inputs)) / np.sqrt(inputs)
            Z, seen = (erf(np.asarray(part.x) @ F.T / np.sqrt(2.0)) / np.sqrt(count) for part in (train, held_out))
            theta = Z.T @ np.linalg.solve(Z @ Z.T + 1e-7 * np.eye(len(Z)), np.eye(10)[y] - 0.1)
            wrong = (seen @ theta).argmax(1) != held_out.y
            errors[0, :, place, seed] = [wrong[held_out.codes == k].mean() for k in range(2)]
    seeds = np.arange(setting.network_seeds)
    coords = {"time": [0.0], "group": [UPRIGHT, TURNED], "features": list(setting.feature_counts), "seed": seeds}
    curve = xr.DataArray(errors, dims=("time", "group", "features", "seed"), coords=coords)
    return tm.Trajectory({"error": curve}, "t", tm.record.Origin("random features", seeds=tuple(seeds.tolist())))


def networks_on_pictures(setting: Setting, source: Source) -> tm.Trajectory:
    """Networks of growing width, trained for long on the same pictures with some wrong labels."""

    train, held_out = picture_groups(source, 0.8, (0.5, 1.0), setting.points, setting.held_out)
    rng = np.random.default_rng(FRESH)
    y = np.where(rng.random(len(train)) < setting.noise, rng.integers(0, 10, len(train)), train.y).astype(np.int64)
    noisy = tm.GroupedData(train.x, y, [train.groups[code] for code in train.codes], groups=train.groups)
    inputs = int(np.prod(train.x.shape[1:]))
    recipe = tm.Recipe(lr=setting.lr, momentum=0.9, epochs=setting.epochs, batch=32, loss=tm.losses.CrossEntropy())
    watch, seeds = tm.Watch(when=tm.record.log_spaced(3)), range(FRESH, FRESH + setting.network_seeds)
    parts = [
        tm.ensemble(partial(tm.modules.mlp, inputs, (width,), 10), noisy, held_out, recipe, watch=watch, seeds=seeds)
        for width in setting.widths
    ]  # fmt: skip
    ends = [part["error"].isel(time=[-1]) for part in parts]
    error = (
        xr.concat(ends, "width", join="override")
        .assign_coords(width=list(setting.widths))
        .transpose("time", "group", "width", "seed")
    )
    return told(tm.Trajectory({"error": error}, "step", parts[0].origin), "network")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Gap and worst group from few features to many; peaks; weights; simulation; pictures."""
    error = runs["theory"]["error"].isel(time=0)
    weighted = runs["theory, weights"]["error"].isel(time=0)
    gap, worst = error.sel(group="-") - error.sel(group="+"), error.max("group")
    places = error.features.values
    few, many = float(places[np.abs(places - 0.5).argmin()]), float(places[-1])
    peaks = [float(places[int(error.sel(group=g).values.argmax())]) for g in "+-"]
    moved = {psi: float(abs(weighted - error).sel(features=psi).max()) for psi in (few, many)}
    measured = runs["simulation"]["error"].isel(time=0)
    seeds = measured.sizes["seed"]
    again = random_features(tm.theory.cases.centred_crossing().problem, measured.features.values, SAMPLES, RIDGE)[
        "error"
    ]
    spread = measured.std("seed", ddof=1) / np.sqrt(seeds)
    z = float((abs(measured.mean("seed") - again) / spread).max())
    found = [
        Claim("The gap in error grows from few features to many", float(gap.sel(features=many) - gap.sel(features=few)),
              f"gap at {many:g} minus gap at {few:g} features per dimension", 0.0,
              f"{float(gap.sel(features=few)):.3f} and {float(gap.sel(features=many)):.3f}."),
        Claim("The worst group still improves", float(worst.sel(features=few) - worst.sel(features=many)),
              "its error with few features minus with many", 0.0),
        Claim("Both groups have their peak of double descent where features equal samples",
              max(abs(p - SAMPLES) for p in peaks), "distance of the peaks from it, in features per dimension", 0.15,
              rule="at most"),
        Claim("Weights help with few features and do nothing with many", moved[many] / moved[few],
              "change of error by weights, many over few", 0.01, f"{moved[few]:.3f} and {moved[many]:.2g}.",
              rule="at most"),
        Claim("Students of random features at finite d have these errors", z,
              "largest deviation in standard errors", 4.0, rule="at most", error=1.0, seeds=seeds),
    ]  # fmt: skip
    return (*found, *(claim for source in WORDS for claim in _on_pictures(runs, source)))


def sweeps(source: Source) -> dict[str, str]:
    """The runs on these pictures, and what grows in them."""
    return {f"random features of {source}": "features", f"networks on {source}": "width"}


def _on_pictures(runs: Runs, source: Source) -> list[Claim]:
    found = []
    for name, dim in sweeps(source).items():
        on = name.replace(source, WORDS[source]).capitalize().replace("fashion-mnist", "Fashion-MNIST")
        sentences = (f"{on}: the gap grows", f"{on}: the worst group improves")
        if name not in runs:
            found += [not_run(sentence, "Needs the pictures.") for sentence in sentences]
            continue
        error = runs[name]["error"].isel(time=0)
        ends = error.isel({dim: [0, -1]})
        gap = ends.sel(group=TURNED) - ends.sel(group=UPRIGHT)
        change, better = (
            gap.isel({dim: 1}) - gap.isel({dim: 0}),
            ends.max("group").isel({dim: 0}) - ends.max("group").isel({dim: 1}),
        )
        seeds = error.sizes["seed"]
        low, high = (int(value) for value in ends.coords[dim].values)
        mean = error.mean("seed")
        ways = [
            f"{g} {float(mean.sel(group=g)[0]):.3f} to {float(mean.sel(group=g)[-1]):.3f}" for g in (UPRIGHT, TURNED)
        ]
        told_ = f"From {low} to {high}: {', '.join(ways)}."
        for sentence, values, what in (
            (sentences[0], change, "change of the gap in error"),
            (sentences[1], better, "error of the worst group, narrow minus wide"),
        ):
            scatter = float(values.std("seed", ddof=1) / np.sqrt(seeds)) if seeds > 1 else None
            found.append(
                Claim(sentence, float(values.mean()), what, 0.0, told_, error=scatter, seeds=seeds, safe=False)
            )
    return found


def pictures(runs: Runs) -> dict[str, Any]:
    """Error of each group against features: theory, pictures, networks."""

    charts = {
        "Double descent of each group": feature_sweep(
            runs["theory"].to_dataset().isel(time=0), samples=SAMPLES, curves=("error", "training_error")
        )
    }
    for source in WORDS:
        for name, dim in sweeps(source).items():
            if name in runs:
                error = runs[name].to_dataset("error").isel(time=0).mean("seed")
                charts[f"Error against {dim}: {name}"] = feature_sweep(error, x=dim, curves=("error",))
    return charts
