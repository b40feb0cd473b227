"""Two moons that a line separates, or just fails to: is the curved feature starved, and does a penalty help?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim


@dataclass(frozen=True)
class Moons:
    """Margins of the moons, and the strength of the penalty (strength / 2) score^2 (spectral decoupling)."""

    points: int = 300
    margins: tuple[float, float] = (-0.1, 0.1)
    width: int = 200
    lr: float = 0.01
    momentum: float = 0.9
    steps: int = 500
    strength: float = 0.1


class Decoupled(nn.Module):
    """Logistic loss plus (strength / 2) score^2."""

    def __init__(self, strength: float) -> None:
        super().__init__()
        self.strength = strength

    def forward(self, score: Tensor, y: Tensor) -> Tensor:
        plain = nn.functional.binary_cross_entropy_with_logits(score, y.to(score.dtype))
        return plain + 0.5 * self.strength * (score**2).mean()


def arms(setting: Moons) -> dict[str, tuple[float, float]]:
    """Margin and strength of each run."""
    overlap, apart = setting.margins
    return {
        "moons-overlap": (overlap, 0.0),
        "moons-apart": (apart, 0.0),
        "moons-overlap-penalty": (overlap, setting.strength),
        "moons-apart-penalty": (apart, setting.strength),
    }


def trained(setting: Moons, margin: float, strength: float, seeds: int) -> tm.Trajectory:
    """All seeds of one arm."""
    return tm.stack([_one(setting, margin, strength, seed) for seed in range(seeds)])


def _one(setting: Moons, margin: float, strength: float, seed: int) -> tm.Trajectory:
    data = lab.data.moons(margin, setting.points)
    torch.manual_seed(seed)
    return tm.train(
        tm.modules.mlp(2, (setting.width,), 1),
        data,
        data,
        tm.Recipe(
            lr=setting.lr, momentum=setting.momentum, steps=setting.steps, batch=len(data), loss=Decoupled(strength)
        ),
        watch=tm.Watch(
            when=tm.record.at([0, setting.steps // 10, setting.steps // 2, setting.steps]),
            measures=(lab.measures.Starvation(side=60),),
            decide=lambda score: score > 0,
        ),
        seed=seed,
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Return the claims about the boundary and the scores."""
    spread = {name: run["boundary_spread"].isel(time=-1) for name, run in runs.items() if name.startswith("moons")}
    size = {name: run["mean_score"].isel(time=-1) for name, run in runs.items() if name.startswith("moons")}
    cured = spread["moons-apart-penalty"] - spread["moons-apart"]
    also = spread["moons-overlap-penalty"] - spread["moons-overlap"]
    return (
        mean_claim(
            "Where a line separates the moons, the boundary bends less",
            spread["moons-overlap"] - spread["moons-apart"],
            "mean loss of spread of the boundary",
            0.0,
        ),
        mean_claim(
            "A penalty on scores lowers them",
            size["moons-apart-penalty"] / size["moons-apart"],
            "mean ratio of mean absolute scores",
            0.5,
            rule="at most",
            neutral=1.0,
        ),
        mean_claim("The penalty bends the boundary where the feature was starved", cured, "mean gain of spread", 0.0),
        mean_claim(
            "It bends the boundary only there",
            cured - also,
            "mean gain of spread, over that of moons that overlap",
            0.0,
            f"It gains {float(cured.mean()):.2f} where a line separates and {float(also.mean()):.2f} where none does: "
            "a penalty on scores bends any boundary.",
            safe=False,
        ),
    )
