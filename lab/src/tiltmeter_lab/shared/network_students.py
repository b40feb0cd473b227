"""Network students: ReLU networks trained by PyTorch on the problems of the theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import tiltmeter as tm


def train_students(
    problem: tm.theory.Mixture,
    sgd: tm.SGD,
    hidden: Sequence[int],
    d: int,
    steps: int,
    seeds: int | Sequence[int],
    optimizer: Any = None,
    points: int = 6000,
    per_decade: int = 10,
) -> tm.Trajectory:
    """Train networks of these hidden layers ((): the linear student) online, on the clock t = steps/d of the theory.

    Every point is seen once. `optimizer` replaces torch's SGD with the rates of `sgd`; the batches remain those of
    `sgd`. `points` is the number of held-out points, half in each group, with the same noise in both.
    """
    import torch

    plain: dict[str, Any] = dict(sgd.to_torch(d))
    batch = int(sgd.batch)  # type: ignore[arg-type]
    data = tm.theory.samples(problem, d, steps * batch, seed=0)
    held_out = tm.theory.samples(
        problem, d, points, seed=1, proportions=dict.fromkeys(problem.groups, 1.0), paired=True
    )
    run = tm.ensemble(
        partial(student, d, hidden),
        data,
        held_out,
        tm.Recipe(
            partial(torch.optim.SGD, **plain) if optimizer is None else optimizer,
            steps=steps,
            batch=batch,
            loss=tm.Square(),
        ),
        watch=tm.Watch(when=tm.record.log_spaced(per_decade)),
        seeds=seeds,
    )
    return told(run.on_clock("t", d=d), "network" if hidden else "linear network")


def student(d: int, hidden: Sequence[int]) -> Any:
    """Return a network whose last layer starts at zero, so that its first score is 0 like that of the theory."""
    from torch import nn

    model = tm.modules.mlp(d, hidden, 1, bias=bool(hidden))
    for parameter in model[-1].parameters():
        nn.init.zeros_(parameter)
    return model


def told(run: tm.Trajectory, source: str) -> tm.Trajectory:
    """Return the run with another source, which charts show as its name."""
    return tm.Trajectory(dict(run), run.clock, replace(run.origin, source=source), run.diverged, points=run.points)
