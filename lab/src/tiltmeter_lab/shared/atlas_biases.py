"""Numbers for the atlas: each simplicity bias as one number, 0 without the bias, larger for more of it.

| bias | the number | space |
|---|---|---|
| low frequency | share of the slow wave learned - share of the fast one | function |
| principal components | share learned of the four largest components - of the four smallest | function |
| shortcut | accuracy with the hard feature exchanged - with the easy one exchanged | input |
| few directions | 1 - number of input directions needed / the same with random directions | input |
| distributional | accuracy above chance on Gaussian clones / on real points | input |
| low-rank weights | 1 - stable rank / that of Gaussian matrices, mean over layers | weights |
| low-rank features | 1 - effective rank / that of Gaussian numbers | features |
| low sensitivity | 1 - how often noise changes a decision / how often another point does | function |
| aligned neurons | share of the first layer in its largest direction - the same before training | weights |
| flatness | log10 of the largest curvature before training / now | weights |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.shared.atlas_tasks import SPECTRUM, WAVES, Task

#: Name -> (task it is read off, space in which it is defined).
BIASES = {
    "low frequency": ("waves", "function"),
    "principal components": ("components", "function"),
    "shortcut": ("two features", "input"),
    "few directions": ("two features", "input"),
    "distributional": ("two features", "input"),
    "low-rank weights": ("two features", "weights"),
    "low-rank features": ("two features", "features"),
    "low sensitivity": ("two features", "function"),
    "aligned neurons": ("two features", "weights"),
    "flatness": ("two features", "weights"),
}
#: Numbers of input directions that are tried, also for images; points whose curvature is measured.
FEW_RANKS, RANKS, CURVED = (1, 2, 4), (1, 4, 16), 128
#: Below this accuracy a network has learned nothing: what it would need, or which statistics it uses, has no answer.
LEARNED = 0.6


@dataclass(frozen=True)
class Start:
    """What some biases are compared with: the network before training."""

    curvature: float
    top_share: float


def start_of(name: str, model: nn.Module, task: Task) -> Start:
    """What the biases of this task need to know of the network before training."""
    return Start(_curvature(model, task.held_out) if name == "two features" else np.nan, _top_share(model))


def read_biases(name: str, model: nn.Module, start: Start, task: Task) -> dict[str, float]:
    """The biases that are read off the task of this name."""
    held_out = task.held_out
    if name == "waves":
        return {"low frequency": _frequency(model, held_out)}
    if name == "components":
        return {"principal components": _components(model, held_out)}
    features = {"easy": task.easy, "hard": task.hard}
    exchanged = lab.measure(lab.measures.Randomised(features), model, held_out)["randomised_accuracy"].sel(part="set")
    inputs = int(np.prod(held_out.x.shape[1:]))
    directions = lab.measure(
        lab.measures.ProjectionDependence(ranks=FEW_RANKS if inputs < 16 else RANKS), model, held_out
    )
    knows = float(directions["projection_accuracy"].sel(part="none").max()) > LEARNED
    needed = float(directions["dependence_rank"] / directions["dependence_rank_null"]) if knows else np.nan
    ranks = lab.measure(lab.measures.EffectiveRank(), model, held_out)
    noise = lab.measure(
        lab.measures.NoiseSensitivity(sigma=0.2, patch=inputs // 8, repeats=1, points=80), model, held_out
    )
    return {
        "shortcut": float(exchanged.sel(feature="hard") - exchanged.sel(feature="easy")),
        "few directions": 1.0 - needed,
        "distributional": _distributional(model, held_out),
        "low-rank weights": _low_rank(model, held_out),
        "low-rank features": 1.0 - float(ranks["effective_rank"] / ranks["effective_rank_null"]),
        "low sensitivity": _insensitive(noise["token_sensitivity"].mean().item(), noise),
        "aligned neurons": _top_share(model) - start.top_share,
        "flatness": float(np.log10(start.curvature / _curvature(model, held_out))),
    }


def _frequency(model: nn.Module, held_out: tm.GroupedData) -> float:
    """Shares learned of the two waves; an error above 1 is nothing learned."""
    error = lab.measure(lab.measures.FrequencyError(WAVES, points=len(held_out)), model, held_out)[
        "frequency_error"
    ].values
    learned = 1.0 - np.minimum(error, 1.0)
    return float(learned[0] - learned[-1])


def _components(model: nn.Module, held_out: tm.GroupedData) -> float:
    """The linear part of the function along every component, over that of the target."""
    with torch.no_grad():
        score = model(torch.as_tensor(held_out.x)).squeeze(-1).numpy()
    plain = np.column_stack([np.asarray(held_out.x) / np.sqrt(SPECTRUM), np.ones(len(score))])
    slopes = np.linalg.lstsq(plain, score, rcond=None)[0][:-1] * np.sqrt(len(SPECTRUM))
    learned = 1.0 - np.minimum(np.abs(1.0 - slopes), 1.0)
    half = len(SPECTRUM) // 2
    return float(learned[:half].mean() - learned[half:].mean())


def _distributional(model: nn.Module, held_out: tm.GroupedData) -> float:
    found = lab.measure(lab.measures.CloneAccuracy({"class covariance": lab.data.ClassCovariance()}), model, held_out)[
        "clone_accuracy"
    ].values
    return float((found[1] - 0.5) / (found[0] - 0.5)) if found[0] > LEARNED else np.nan


def _low_rank(model: nn.Module, held_out: tm.GroupedData) -> float:
    found = lab.measure(lab.measures.StableRank(), model, held_out)
    ratio = found["stable_rank"].values / found["stable_rank_null"].values
    # The last layer has one row, whose rank is 1 whatever it holds.
    return float(1.0 - ratio[:-1].mean())


def _insensitive(sensitivity: float, noise: Mapping[str, Any]) -> float:
    null = float(np.asarray(noise["token_sensitivity_null"]).mean())
    return 1.0 - sensitivity / null if null > 0.05 else np.nan


def _curvature(model: nn.Module, held_out: tm.GroupedData) -> float:
    """The largest eigenvalue of the Hessian of the loss of some points."""
    few = slice(0, CURVED)
    x, y = torch.as_tensor(held_out.x[few]), torch.as_tensor(held_out.y[few])
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def losses(places: Tensor) -> Tensor:
        residual: Tensor = model(x[places]).squeeze(-1) - y[places]
        return 0.5 * residual.square()

    def times(vector: Tensor) -> Tensor:
        return tm.modules.hessian_times(losses, parameters, torch.arange(len(y)), vector, CURVED)

    start = torch.randn(sum(parameter.numel() for parameter in parameters), generator=torch.Generator().manual_seed(0))
    return max(float(tm.modules.top_eigenpairs(times, start, 1, 8)[0][0]), 1e-6)


def _top_share(model: nn.Module) -> float:
    """Of the squared weights of the first layer, how much lies along its largest direction."""
    weight = next(parameter for parameter in model.parameters() if parameter.ndim == 2).detach().double()
    values = torch.linalg.svdvals(weight) ** 2
    return float(values[0] / values.sum())
