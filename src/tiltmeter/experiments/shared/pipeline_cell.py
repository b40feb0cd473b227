"""pipeline_cell: one training on grouped data with one choice for every part of the pipeline, and its group bias."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.samples import samples
from tiltmeter.experiments.shared.atlas_tasks import network, optimiser
from tiltmeter.problem.teacher_mixture import teacher_mixture

#: The first group is the better represented one, the second the one of larger variance.
MIXTURE_D, LOOK, BATCH, LOOKS = 20, 1000, 32, 12
#: Differences in loss below this do not count as a lead when crossings are counted.
LEAD = 0.01
PRUNING = ("none", "half", "nine tenths", "nine tenths, tuned")
RESPONSES = {
    "final_gap": "loss of the second group less that of the first, at the end",
    "gap_area": "mean of that difference over log time",
    "worst_loss": "loss of the worse group at the end",
    "crossings": "changes of the lead",
    "early_gap": "the difference after a fiftieth of training",
    "initial_guess": "how far the share of positive decisions is from one half before training",
}


def pipeline_cell(settings: dict[str, Any]) -> xr.Dataset:
    """What `RESPONSES` names, for one value of every factor of the pipeline atlas.

    `order` is the seed of the batches (None: that of the run), `seed` that of initial weights and of label noise.
    """
    train, look = grouped(settings)
    x, y = torch.as_tensor(np.asarray(train.x, dtype=np.float32)), torch.as_tensor(flipped(train, settings))
    shape = (settings["depth"], settings["width"])
    model = network(x.shape[1], shape, settings["activation"], settings["scale"], settings["seed"])
    first = scores(model, look)
    order = settings["seed"] if settings["order"] is None else settings["order"]
    curve, stopped = trained(model, x, y, look, settings, order)
    final = stopped if settings["stop"] == "best look" else model
    pruned(final, settings["pruning"], x, y, settings, order)
    losses = group_losses(final, look)
    gaps = np.array([losses_at[1] - losses_at[0] for _, losses_at in curve])
    leads = np.sign(gaps[np.abs(gaps) > LEAD])
    found = {
        "final_gap": losses[1] - losses[0],
        "gap_area": gaps.mean(),
        "worst_loss": losses.max(),
        "crossings": float((leads[1:] != leads[:-1]).sum()),
        "early_gap": gaps[1],
        "initial_guess": abs(float((first > 0).mean()) - 0.5),
    }
    return xr.Dataset({name: float(value) for name, value in found.items()})


def grouped(settings: dict[str, Any]) -> tuple[GroupedData, GroupedData]:
    """Training and held-out points of a data set; share and variance are those of the synthetic ones."""
    if settings["data"] == "mixture":
        spread = (1.0, float(settings["variance"]))
        problem = teacher_mixture(rho=settings["share"], shift=0.2, variance=spread, overlap=0.5)
        even = dict.fromkeys(problem.groups, 1.0)
        return samples(problem, MIXTURE_D, 600, 0), samples(problem, MIXTURE_D, LOOK, 1, proportions=even, paired=True)
    if settings["data"] == "digits":
        from tiltmeter.data.public.digits import digits

        train, look = digits(settings["share"], (1.0, float(settings["variance"]) ** 0.5), labels="large")
        return _ordered(train, ("upright", "turned")), _ordered(look, ("upright", "turned"))
    return _adult()


@lru_cache(maxsize=1)
def _adult() -> tuple[GroupedData, GroupedData]:
    """Two thousand people of each part, read once by a process."""
    from tiltmeter.data.public.adult import adult

    train, look = adult()
    chosen = [np.random.default_rng(seed).choice(len(part), 2000, False) for seed, part in enumerate((train, look))]
    parts = [
        GroupedData(np.asarray(part.x)[some], 2.0 * np.asarray(part.y)[some] - 1.0, names(part)[some])
        for part, some in zip((train, look), chosen, strict=True)
    ]
    return _ordered(parts[0], ("Male", "Female")), _ordered(parts[1], ("Male", "Female"))


def _ordered(data: GroupedData, groups: tuple[str, str]) -> GroupedData:
    """The better represented group first."""
    return GroupedData(data.x, data.y, names(data), groups=list(groups))


def names(data: GroupedData) -> np.ndarray:
    """The group of every point."""
    return np.asarray(np.array([str(group) for group in data.groups])[data.codes])


def flipped(train: GroupedData, settings: dict[str, Any]) -> np.ndarray:
    """The labels, a share of them turned."""
    y = np.asarray(train.y, dtype=np.float32)
    turn = np.random.default_rng([settings["seed"], 7]).random(len(y)) < settings["noise"]
    return np.where(turn, -y, y).astype(np.float32)


def trained(
    model: nn.Module, x: Tensor, y: Tensor, look: GroupedData, settings: dict[str, Any], order: int
) -> tuple[list[tuple[int, np.ndarray]], nn.Module]:
    """Group losses at log-spaced steps, and the network at the look with the lowest held-out loss of all points."""
    steps = settings["steps"]
    looks = sorted({0, *np.unique(np.geomspace(max(1, steps // 50), steps, LOOKS - 1).round().astype(int)).tolist()})
    rule = optimiser(settings["optimiser"], settings["lr"], list(model.parameters()))
    for group in rule.param_groups:
        group["weight_decay"] = settings["decay"]
    stream = torch.Generator().manual_seed(order)
    curve: list[tuple[int, np.ndarray]] = []
    best, lowest = model, np.inf
    for step in range(steps + 1):
        if step in looks:
            losses = group_losses(model, look)
            curve.append((step, losses))
            if losses.mean() < lowest:
                best, lowest = deepcopy(model), float(losses.mean())
        if step < steps:
            _step(model, rule, x, y, stream)
    return curve, best


def _step(model: nn.Module, rule: torch.optim.Optimizer, x: Tensor, y: Tensor, stream: torch.Generator) -> None:
    chosen = torch.randint(len(x), (BATCH,), generator=stream)
    loss = 0.5 * (model(x[chosen]).squeeze(-1) - y[chosen]).square().mean()
    rule.zero_grad()
    loss.backward()
    rule.step()


def pruned(model: nn.Module, how: str, x: Tensor, y: Tensor, settings: dict[str, Any], order: int) -> None:
    """The smallest weights of each layer set to zero; "tuned" trains the others for a fifth of the steps more."""
    if how == "none":
        return
    share = 0.5 if how == "half" else 0.9
    masks = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and parameter.shape[0] > 1:
                masks[name] = parameter.abs() > parameter.abs().quantile(share)
                parameter.mul_(masks[name])
    if how.endswith("tuned"):
        rule = optimiser(settings["optimiser"], settings["lr"], list(model.parameters()))
        stream = torch.Generator().manual_seed(order + 1)
        for _ in range(settings["steps"] // 5):
            _step(model, rule, x, y, stream)
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    if name in masks:
                        parameter.mul_(masks[name])


def scores(model: nn.Module, look: GroupedData) -> np.ndarray:
    with torch.no_grad():
        return np.asarray(model(torch.as_tensor(np.asarray(look.x, dtype=np.float32))).squeeze(-1))


def group_losses(model: nn.Module, look: GroupedData) -> np.ndarray:
    """Half the mean squared error of each group, in the order of the groups."""
    losses = 0.5 * (scores(model, look) - np.asarray(look.y)) ** 2
    return np.array([losses[look.of_group(group)].mean() for group in look.groups])
