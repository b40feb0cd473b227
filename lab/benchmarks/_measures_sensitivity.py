"""Sensitivity against the straightforward way: one point, one flip or one noisy token at a time.

`compare()` gives rows for `_measure.report`; run alone, it prints and writes them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.boolean import Parity, boolean_data
from tiltmeter_lab.measures.boolean_sensitivity import BooleanSensitivity
from tiltmeter_lab.measures.noise_sensitivity import NoiseSensitivity, token_masks

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

BITS, POINTS, TOKENS, REPEATS, SIGMA = 8, 50, 16, 2, 0.5
BAR = 10.0


def flips_one_by_one(model: nn.Module) -> float:
    """The share of flips that change the decision, a string and a bit at a time."""
    changed = 0
    with torch.no_grad():
        for k in range(2**BITS):
            x = torch.tensor([[1.0 if k >> i & 1 else -1.0 for i in range(BITS)]])
            decision = model(x).item() > 0
            for i in range(BITS):
                other = x.clone()
                other[0, i] *= -1
                changed += (model(other).item() > 0) != decision
    return changed / (2**BITS * BITS)


def noise_one_by_one(model: nn.Module, x: torch.Tensor, masks: torch.Tensor) -> float:
    """The share of noisy tokens that change the decision, a point, a token and a draw at a time."""
    stream = torch.Generator().manual_seed(0)
    changed = 0
    with torch.no_grad():
        for point in x:
            decision = model(point[None]).argmax().item()
            for mask in masks:
                for _ in range(REPEATS):
                    noisy = point + SIGMA * mask * torch.randn(point.shape, generator=stream)
                    changed += model(noisy[None]).argmax().item() != decision
    return changed / (len(x) * len(masks) * REPEATS)


def compare() -> dict[str, dict[str, float]]:
    """Both measures against both loops, on the same models; the answers must agree."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cube, model = boolean_data(Parity((0, 1)), BITS), mlp(BITS, (32,), 1)
    fast = float(lab.measure(BooleanSensitivity(), model, cube)["boolean_sensitivity"])
    assert fast == flips_one_by_one(model), "the two ways disagree"
    rows = {
        "boolean sensitivity, one by one over vectorised": best(lambda: flips_one_by_one(model), 3)
        / best(lambda: lab.measure(BooleanSensitivity(), model, cube), 3)
    }
    rng = np.random.default_rng(0)
    images = tm.GroupedData(
        rng.normal(size=(POINTS, 1, 16, 16)).astype(np.float32), np.arange(POINTS) % 2, np.zeros(POINTS, dtype=int)
    )
    net, masks = mlp(256, (64,), 2), token_masks((1, 16, 16), 4)
    assert len(masks) == TOKENS
    measure = NoiseSensitivity(SIGMA, 4, REPEATS, POINTS)
    x = images.tensors()[0]
    found = lab.measure(measure, net, images)
    slow = noise_one_by_one(net, x, masks)
    assert abs(slow - float(found["noise_sensitivity"])) < 6 * float(found["noise_sensitivity_se"]) + 0.01
    rows["noise sensitivity, one by one over vectorised"] = best(lambda: noise_one_by_one(net, x, masks), 3) / best(
        lambda: lab.measure(measure, net, images), 3
    )
    return {label: {"ratio": ratio, "bar": BAR, "met": ratio >= BAR} for label, ratio in rows.items()}


if __name__ == "__main__":
    report("measures_sensitivity", compare(), "torch")
