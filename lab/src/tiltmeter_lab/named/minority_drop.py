"""The minority initial drop: a rare class first gets worse, unless the gradients of all classes are normalised."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.minority_drop import MinorityDrop, minority_drop
from tiltmeter_lab.shared.random_streams import kept_streams

TITLE = "A rare class first gets worse before it is learnt; steps with equal force for every class do not do that"
PAPER = "Francazi, Baity-Jesi and Lucchi (2023), A theoretical analysis of the learning dynamics under class imbalance"
NEEDS: tuple[str, ...] = ()

PLAIN, EQUAL = "gradient descent", "equal force per class"
MANY, FEW = "many", "few"
#: The training points are looked at as separate groups.
TRAINED = "{}, trained on"


@dataclass(frozen=True)
class Setting:
    """Two Gaussian classes in `d` dimensions, full-batch descent of a network with one hidden layer."""

    seeds: int = 6
    ratios: tuple[int, ...] = (1, 5, 20)
    d: int = 20
    points: int = 300
    separation: float = 2.0
    units: int = 32
    steps: int = 300
    lr: float = 0.1


QUICK = Setting()
FULL = replace(QUICK, seeds=24, ratios=(1, 2, 5, 10, 20, 50), points=1000, steps=1500)


def run(setting: Setting, keep: Keep) -> Runs:
    """One run for every method and imbalance, all seeds in it; the same starts and means whatever the method."""
    return {
        name: keep(name, lambda r=ratio, e=equal: _seeds(setting, r, e))  # type: ignore[misc]
        for equal, method in ((False, PLAIN), (True, EQUAL))
        for ratio in setting.ratios
        for name in (f"{method}, 1 in {ratio}",)
    }


def classes(setting: Setting, ratio: int, seed: int) -> tuple[tm.GroupedData, tm.GroupedData]:
    """What to train on, one of the rare class for every `ratio` of the other; what to look at: new points, balanced,
    and those trained on.
    """
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=setting.d)
    middle = 0.5 * setting.separation * direction / np.linalg.norm(direction)

    def draw(many: int, few: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        y = np.repeat([0, 1], [many, few])
        x = rng.normal(size=(len(y), setting.d)) + np.where(y, 1.0, -1.0)[:, None] * middle
        return x.astype(np.float32), y, np.where(y, FEW, MANY)

    new = draw(setting.points, setting.points)
    x, y, group = draw(setting.points, max(2, setting.points // ratio))
    again = (x, y, np.array([TRAINED.format(name) for name in group]))
    with warnings.catch_warnings():  # the rare class is small on purpose
        warnings.simplefilter("ignore")
        held_out = tm.GroupedData(*(np.concatenate(parts) for parts in zip(new, again, strict=True)))
        return tm.GroupedData(x, y, group), held_out


def descend(setting: Setting, ratio: int, seed: int, equal: bool) -> tm.Trajectory:
    """One run; with `equal`, the gradient of each class is divided by its length (PCNGD) and halved."""
    train, held_out = classes(setting, ratio, seed)
    torch.manual_seed(seed)
    model = tm.modules.mlp(setting.d, (setting.units,), 2)
    parameters = list(model.parameters())
    x, y = train.tensors()
    with tm.Probe(model, held_out, watch=tm.Watch(when=tm.record.log_spaced(12)), seed=seed, budget=None) as probe:
        for step in range(setting.steps):
            probe(step)
            losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
            parts = [losses[y == label].mean() for label in (0, 1)] if equal else [losses.mean()]
            pulls = [torch.autograd.grad(part, parameters, retain_graph=True) for part in parts]
            forces = [1.0 / (len(parts) * _length(pull)) if equal else 1.0 for pull in pulls]
            with torch.no_grad():
                for place, parameter in enumerate(parameters):
                    for force, pull in zip(forces, pulls, strict=True):
                        parameter.sub_(pull[place], alpha=setting.lr * force)
        probe.evaluate(setting.steps, last=True)
    return probe.trajectory()


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict."""
    plain, equal = (_drops(runs, method, TRAINED.format(FEW)) for method in (PLAIN, EQUAL))
    new = _drops(runs, EQUAL, FEW)[max(equal)]
    rare = [ratio for ratio in plain if ratio >= 5]
    mild, strong = min(rare), max(rare)
    least = min((plain[ratio] for ratio in rare), key=lambda drop: drop.drop)
    most = max(equal.values(), key=lambda drop: drop.drop)
    control = plain[1]
    last = max(float(run["error"].time[-1]) for run in runs.values())
    seeds = control.seeds
    return (
        Claim(
            "The recall of a rare class falls before it rises",
            least.drop,
            f"smallest mean drop at an imbalance of {mild} or more",
            0.2,
            f"Lowest recall {least.lowest:.3f}, from {least.start:.3f} at the start.",
            error=least.error,
            seeds=seeds,
            neutral=0.0,
        ),
        Claim(
            "The loss of a rare class rises at first, the more the rarer it is",
            plain[strong].loss_rise - plain[mild].loss_rise,
            f"rise at 1 in {strong} minus rise at 1 in {mild}",
            0.1,
            f"Rises of {plain[mild].loss_rise:.3f} and {plain[strong].loss_rise:.3f}.",
            seeds=seeds,
        ),
        Claim(
            "The rarer a class, the later it is back where it started",
            min(plain[strong].back_at, last) / min(plain[mild].back_at, last),
            f"steps at 1 in {strong} over steps at 1 in {mild}",
            1.2,
            f"Back at step {plain[mild].back_at:g} and {plain[strong].back_at:g}; not back by the end (inf) counts as "
            f"step {last:g}.",
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "Steps in which every class pulls with the same force have no such drop",
            most.drop,
            "largest mean drop",
            0.1,
            f"On new points the few examples are memorised: at 1 in {max(equal)} recall ends at {new.end:.3f}.",
            rule="at most",
            error=most.error,
            seeds=seeds,
        ),
        Claim(
            "Balanced classes have no such drop",
            control.drop,
            "mean drop",
            0.1,
            rule="at most",
            error=control.error,
            seeds=seeds,
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Recall of the rare class over training, one line per imbalance."""
    return {
        f"Recall of the rare class, {method}": tm.plot.curves(_recall(runs, method), curve="recall")
        for method in (PLAIN, EQUAL)
    }


def _seeds(setting: Setting, ratio: int, equal: bool) -> tm.Trajectory:
    with kept_streams():
        return tm.stack([descend(setting, ratio, seed, equal) for seed in range(setting.seeds)])


def _length(pull: tuple[Tensor, ...]) -> float:
    return float(torch.sqrt(torch.stack([part.square().sum() for part in pull]).sum())) or 1.0


def _ratios(runs: Runs, method: str) -> dict[int, tm.Trajectory]:
    return {int(name.split()[-1]): run for name, run in runs.items() if name.startswith(f"{method},")}


def _drops(runs: Runs, method: str, group: str) -> dict[int, MinorityDrop]:
    return {ratio: minority_drop(run, group) for ratio, run in _ratios(runs, method).items()}


def _recall(runs: Runs, method: str) -> tm.Trajectory:
    found = _ratios(runs, method)
    recall = 1.0 - xr.concat(
        [run["error"].sel(group=TRAINED.format(FEW), drop=True) for run in found.values()],
        "group",
        coords="minimal",
        compat="override",
    )
    labelled = recall.assign_coords(group=[f"1 in {ratio}" for ratio in found]).transpose("time", "group", ...)
    attrs = {"long_name": "share of the rare class decided right, points trained on", "better": "higher"}
    return tm.Trajectory({"recall": labelled.assign_attrs(attrs)}, "step", tm.record.Origin("training"))
