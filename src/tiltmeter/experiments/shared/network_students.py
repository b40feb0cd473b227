"""Network students: ReLU networks trained by PyTorch on the problems of the theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tiltmeter.data.synthetic.samples import samples
from tiltmeter.losses import Square
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import Trajectory, log_spaced


def train_students(
    problem: Mixture,
    sgd: SGD,
    hidden: Sequence[int],
    d: int,
    steps: int,
    seeds: int | Sequence[int],
    optimizer: Any = None,
    points: int = 6000,
    per_decade: int = 10,
) -> Trajectory:
    """Train networks of these hidden layers ((): the linear student) online, on the clock t = steps/d of the theory.

    Every point is seen once. `optimizer` replaces torch's SGD with the rates of `sgd`; the batches remain those of
    `sgd`. `points` is the number of held-out points, half in each group, with the same noise in both.
    """
    import torch

    from tiltmeter.training.ensemble import ensemble

    plain: dict[str, Any] = dict(sgd.to_torch(d))
    batch = int(sgd.batch)  # type: ignore[arg-type]
    data = samples(problem, d, steps * batch, seed=0)
    look = samples(problem, d, points, seed=1, proportions=dict.fromkeys(problem.groups, 1.0), paired=True)
    run = ensemble(
        partial(student, d, hidden),
        data,
        look,
        Recipe(
            partial(torch.optim.SGD, **plain) if optimizer is None else optimizer,
            steps=steps,
            batch=batch,
            loss=Square(),
        ),
        watch=Watch(when=log_spaced(per_decade)),
        seeds=seeds,
    )
    return told(run.on_clock("t", d=d), "network" if hidden else "linear network")


def student(d: int, hidden: Sequence[int]) -> Any:
    """Return a network whose last layer starts at zero, so that its first score is 0 like that of the theory."""
    from torch import nn

    from tiltmeter.networks.mlp import mlp

    model = mlp(d, hidden, 1, bias=bool(hidden))
    for parameter in model[-1].parameters():
        nn.init.zeros_(parameter)
    return model


def told(run: Trajectory, source: str) -> Trajectory:
    """Return the run with another source, which charts show as its name."""
    return Trajectory(dict(run), run.clock, replace(run.origin, source=source), run.diverged, points=run.points)
