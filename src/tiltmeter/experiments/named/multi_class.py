"""Several classes: crossings where the groups share more or less of what tells the classes apart. An open question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tiltmeter.analysis.crossings import crossings
from tiltmeter.data.grouped import GroupedData
from tiltmeter.experiments.catalogue import Keep, Runs
from tiltmeter.experiments.claim import Claim, whether
from tiltmeter.experiments.shared.lead import leaders
from tiltmeter.experiments.shared.network_students import told
from tiltmeter.losses import CrossEntropy
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced

TITLE = "Several classes with shared structure: do groups still cross? (open question)"
PAPER = "No published answer; the setting is that of Jain, Nobahari, Baratin and Sarao Mannelli (2024)"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """`overlaps` say how much of the direction of every class the two groups share."""

    classes: int = 5
    overlaps: tuple[float, ...] = (0.0, 0.5, 0.9)
    rho: float = 0.8
    variance: tuple[float, float] = (0.5, 1.5)
    d: int = 60
    width: int = 64
    lr: float = 0.05
    batch: int = 20
    steps: int = 2000
    seeds: int = 6


QUICK = Setting()
FULL = Setting(classes=10, overlaps=(0.0, 0.25, 0.5, 0.75, 0.9, 1.0), d=100, width=256, lr=0.02, steps=20000, seeds=30)


def run(setting: Setting, keep: Keep) -> Runs:
    """Networks with one output per class, for every overlap."""
    return {f"overlap {o:g}": keep(f"overlap {o:g}", partial(_networks, setting, o)) for o in setting.overlaps}


def several_classes(setting: Setting, overlap: float, points: tuple[int, int], seed: int) -> GroupedData:
    """Gaussian inputs whose class is that of the largest of several random scores; those of the groups overlap."""
    world = np.random.default_rng(0)
    own, other = world.normal(size=(2, setting.classes, setting.d)) / np.sqrt(setting.d)
    directions = (own, overlap * own + np.sqrt(1.0 - overlap**2) * other)
    rng = np.random.default_rng((seed, 1))
    x = [np.sqrt(v) * rng.normal(size=(n, setting.d)) for v, n in zip(setting.variance, points, strict=True)]
    y = [(part @ w.T).argmax(1) for part, w in zip(x, directions, strict=True)]
    group = np.repeat(["+", "-"], points)
    return GroupedData(np.concatenate(x).astype(np.float32), np.concatenate(y), group, groups=("+", "-"))


def _networks(setting: Setting, overlap: float) -> Trajectory:
    import torch

    from tiltmeter.networks.mlp import mlp
    from tiltmeter.training.ensemble import ensemble

    def make() -> Any:
        model = mlp(setting.d, (setting.width,), setting.classes)
        for parameter in model[-1].parameters():
            torch.nn.init.zeros_(parameter)
        return model

    total = setting.steps * setting.batch
    large = round(setting.rho * total)
    run = ensemble(
        make,
        several_classes(setting, overlap, (large, total - large), seed=0),
        several_classes(setting, overlap, (3000, 3000), seed=1),
        Recipe(lr=setting.lr, steps=setting.steps, batch=setting.batch, loss=CrossEntropy()),
        watch=Watch(when=log_spaced(10)),
        seeds=setting.seeds,
    )
    return told(run, "network")


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Whether losses and errors cross, at each overlap: what we saw."""
    found = []
    seeds = len(next(iter(runs.values())).origin.seeds)
    for name, run in runs.items():
        found.append(
            whether(
                f"With {name} of the classes, the losses cross from - to +",
                leaders(run).endswith("-+"),
                "does - lead first and + to the end",
                f"Loss: {crossings(run)} Error: {crossings(run, 'error')}",
                seeds=seeds,
            )
        )
    return tuple(found)


def pictures(runs: Runs) -> dict[str, Any]:
    """The gap in cross-entropy for every overlap."""
    from tiltmeter.experiments.shared.pictures import loss_gaps

    return {"Gap in cross-entropy of several classes": loss_gaps(runs, "steps", "shared structure")}
