"""A shortcut and a core feature: which one linear and deep models rely on as the shortcut is amplified."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim


@dataclass(frozen=True)
class Amplified:
    """Predictivity of shortcut and core, amplification of the shortcut, and networks of several depths."""

    predictivity: tuple[float, float] = (0.85, 0.9)
    ratios: tuple[float, ...] = (1.0, 10.0, 30.0)
    d: int = 50
    points: int = 3000
    depths: tuple[int, ...] = (1, 3)
    width: int = 64
    lr: float = 1e-3
    steps: int = 300
    batch: int = 256


def converged_linear(setting: Amplified, seeds: int) -> tm.Trajectory:
    """Return the minimum of unpenalised logistic regression for every ratio."""
    return tm.stack(
        [tm.stack([_linear(setting, ratio, seed) for seed in range(seeds)]) for ratio in setting.ratios],
        "ratio",
        list(setting.ratios),
    )


def _linear(setting: Amplified, ratio: float, seed: int) -> tm.Trajectory:
    from sklearn.linear_model import LogisticRegression

    latents = lab.data.Latents(setting.predictivity, (ratio, 1.0), setting.d)
    data = latents.sample(setting.points, seed)
    fitted = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, fit_intercept=False)
    # The data lie in the plane of the two features, and gradient descent from zero stays in it.
    fitted.fit(data.x @ latents.frame.T, data.y)
    model = nn.Linear(setting.d, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.as_tensor(fitted.coef_ @ latents.frame))
    found = lab.measure(lab.measures.Availability(latents), model, data)
    curves = {name: values.expand_dims(time=[0]) for name, values in found.items()}
    return tm.Trajectory(curves, "step", tm.record.Origin("equilibrium", settings={"ratio": ratio}, seeds=(seed,)))


def networks(setting: Amplified, depth: int, seeds: int) -> tm.Trajectory:
    """Networks of one depth, trained with Adam, for every ratio."""
    return tm.stack(
        [tm.stack([_network(setting, depth, ratio, seed) for seed in range(seeds)]) for ratio in setting.ratios],
        "ratio",
        list(setting.ratios),
    )


def _network(setting: Amplified, depth: int, ratio: float, seed: int) -> tm.Trajectory:
    latents = lab.data.Latents(setting.predictivity, (ratio, 1.0), setting.d)
    data = latents.sample(setting.points, seed)
    torch.manual_seed(seed)
    return tm.train(
        tm.modules.mlp(setting.d, (setting.width,) * depth, 1),
        data,
        data,
        tm.Recipe(partial(torch.optim.Adam, lr=setting.lr), steps=setting.steps, batch=setting.batch),
        watch=tm.Watch(
            when=tm.record.at([0, setting.steps // 10, setting.steps]), measures=(lab.measures.Availability(latents),)
        ),
        seed=seed,
    )


def claims(runs: Runs, setting: Amplified) -> tuple[Claim, ...]:
    """Return the claims about reliance on features."""
    bias = {name: run["availability_bias"].isel(time=-1) for name, run in runs.items() if name.startswith("available")}
    linear = bias["available-linear"]
    deep = bias[f"available-depth-{max(setting.depths)}"]
    rise = deep.isel(ratio=-1) - deep.isel(ratio=0)
    shallow = bias[f"available-depth-{min(setting.depths)}"]
    other = float((shallow.isel(ratio=-1) - shallow.isel(ratio=0)).mean())
    return (
        share_claim(
            "The reliance of a converged linear model does not depend on the amplification",
            linear.max("ratio") - linear.min("ratio") <= 1e-6,
            f"share of seeds whose bias is the same at ratios {setting.ratios[0]:g} and {setting.ratios[-1]:g}",
        ),
        mean_claim(
            f"Networks of {max(setting.depths)} hidden layers rely more on the amplified feature",
            rise,
            f"mean rise of the bias from ratio {setting.ratios[0]:g} to {setting.ratios[-1]:g}",
            0.02,
            f"With {min(setting.depths)} it is {other:.3f}.",
            safe=False,
            neutral=0.0,
        ),
    )
