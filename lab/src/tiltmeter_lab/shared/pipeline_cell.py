"""pipeline_cell: trainings on grouped data with one choice for every part of the pipeline, and their group bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

import tiltmeter as tm
from tiltmeter_lab.shared.curriculum import pool, ranking
from tiltmeter_lab.shared.pipeline_data import pipeline_data
from tiltmeter_lab.shared.stacked_training import Snapshots, Trainer, changed, draws, gathered, networks

EVALUATIONS = 12
#: Differences in loss below this do not count as a lead when crossings are counted.
LEAD = 0.01
PRUNING = ("none", "half", "nine tenths", "nine tenths, tuned")
STOPS = ("end", "best evaluation")
RESPONSES = {
    "final_gap": "loss of the second group less that of the first, at the end",
    "gap_area": "mean of that difference over log time",
    "worst_loss": "loss of the worse group at the end",
    "crossings": "changes of the lead",
    "early_gap": "the difference after a fiftieth of training",
    "initial_guess": "how far the share of positive decisions is from one half before training",
}


def pipeline_cell(settings: dict[str, Any]) -> xr.Dataset:
    """What `RESPONSES` names, for one value of every factor of the pipeline atlas, `seeds` networks trained together.

    The stopping rule and pruning act on networks that are trained already: `final_gap` and `worst_loss` hold all their
    combinations. `order` is the seed of the batches of all networks (None: each has its own seed), a seed that of
    initial weights and of label noise.
    """
    train, held_out = pipeline_data(settings["data"], settings["share"], settings["variance"])
    seeds = range(settings["seeds"])
    labels = np.stack([flipped(train, settings["noise"], seed) for seed in seeds])
    x, y = torch.as_tensor(train.x), torch.as_tensor(labels)
    shape = (settings["depth"], settings["width"])
    stacked = networks(x.shape[1], shape, settings["activation"], settings["scale"], seeds)
    guess = (scores(stacked, held_out) > 0).mean(-1)
    chosen = batches(settings, np.asarray(train.x), labels)
    trainer = Trainer(stacked, settings["optimiser"], settings["lr"], settings["decay"])
    curve, best = trained(trainer, x, y, held_out, chosen)
    final = np.stack([
        [group_losses(pruned(kept, how, x, y, settings, chosen), held_out) for how in PRUNING]
        for kept in (stacked, best)
    ])  # fmt: skip
    gaps = curve[..., 1] - curve[..., 0]
    inner = ("stop", "pruning", "seed")
    found = {
        "final_gap": (inner, final[..., 1] - final[..., 0]),
        "gap_area": ("seed", gaps.mean(0)),
        "worst_loss": (inner, final.max(-1)),
        "crossings": ("seed", np.array([crossings(one) for one in gaps.T])),
        "early_gap": ("seed", gaps[1]),
        "initial_guess": ("seed", np.abs(guess - 0.5)),
    }
    coords = {"stop": list(STOPS), "pruning": list(PRUNING), "seed": list(seeds)}
    return xr.Dataset(found, coords=coords)


def flipped(train: tm.GroupedData, noise: float, seed: int) -> np.ndarray:
    """The labels, a share of them turned."""
    y = np.asarray(train.y, dtype=np.float32)
    turn = np.random.default_rng([seed, 7]).random(len(y)) < noise
    return np.where(turn, -y, y).astype(np.float32)


def batches(settings: dict[str, Any], x: np.ndarray, labels: np.ndarray) -> Tensor:
    """Places of the points of every batch, (networks, steps, batch), in the order of the curriculum."""
    steps, curriculum = settings["steps"], settings["curriculum"]
    sizes = pool(curriculum, labels.shape[1], steps)
    found = []
    for seed, y in enumerate(labels):
        order = seed if settings["order"] is None else settings["order"]
        found.append(torch.as_tensor(ranking(curriculum, x, y))[draws(order, steps, sizes)])
    return torch.stack(found)


def trained(
    trainer: Trainer, x: Tensor, y: Tensor, held_out: tm.GroupedData, chosen: Tensor
) -> tuple[np.ndarray, tm.training.Stacked]:
    """Group losses (evaluations, networks, groups) at log-spaced steps, and each network at its best evaluation of all
    points."""
    steps = chosen.shape[1]
    evaluations = {
        0,
        *np.unique(np.geomspace(max(1, steps // 50), steps, EVALUATIONS - 1).round().astype(int)).tolist(),
    }
    curve: list[np.ndarray] = []
    best, lowest = Snapshots(trainer.stacked), np.full(len(chosen), np.inf)
    for step in range(steps + 1):
        if step in evaluations:
            losses = group_losses(trainer.stacked, held_out)
            better = losses.mean(-1) < lowest
            best.take(torch.as_tensor(better))
            lowest = np.where(better, losses.mean(-1), lowest)
            curve.append(losses)
        if step < steps:
            trainer.step(x[chosen[:, step]], gathered(y, chosen[:, step]))
    return np.stack(curve), best.kept


def pruned(
    stacked: tm.training.Stacked, how: str, x: Tensor, y: Tensor, settings: dict[str, Any], chosen: Tensor
) -> tm.training.Stacked:
    """The smallest weights of each layer set to zero; "tuned" trains the others for a fifth of the steps more.

    The last layer, which has one row, is left as it is.
    """
    if how == "none":
        return stacked
    share = 0.5 if how == "half" else 0.9
    masks = {
        name: value.abs() > value.abs().flatten(1).quantile(share, dim=1)[:, None, None]
        for name, value in stacked.parameters.items()
        if value.ndim == 3 and value.shape[1] > 1
    }
    made = changed(stacked, lambda name, value: value * masks[name] if name in masks else value)
    if how.endswith("tuned"):
        trainer = Trainer(made, settings["optimiser"], settings["lr"], settings["decay"])
        for step in range(settings["steps"] // 5):
            places = chosen[:, -1 - step]
            trainer.step(x[places], gathered(y, places))
            for name, mask in masks.items():
                made.parameters[name].mul_(mask)
    return made


def crossings(gap: np.ndarray) -> float:
    """Changes of the lead, where one is larger than `LEAD`.

    >>> crossings(np.array([0.0, 0.3, -0.005, 0.2, -0.4]))
    1.0
    """
    leads = np.sign(gap[np.abs(gap) > LEAD])
    return float((leads[1:] != leads[:-1]).sum())


def scores(stacked: tm.training.Stacked, held_out: tm.GroupedData) -> np.ndarray:
    """Outputs (networks, points)."""
    return np.asarray(stacked.evaluate(torch.as_tensor(held_out.x)).squeeze(-1))


def group_losses(stacked: tm.training.Stacked, held_out: tm.GroupedData) -> np.ndarray:
    """Half the mean squared error (networks, groups), in the order of the groups."""
    losses = 0.5 * (scores(stacked, held_out) - np.asarray(held_out.y)) ** 2
    return np.stack([losses[:, held_out.of_group(group)].mean(-1) for group in held_out.groups], -1)
