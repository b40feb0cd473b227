"""low-sensitivity: networks start as functions of low sensitivity and learn such ones; patches at matched error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run
from tiltmeter_lab.networks import small_cnn, transformer
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim

TITLE = "Networks begin with functions of low sensitivity and stay as low as the target allows"
PAPER = "Bhattamishra et al., ACL 2023 (Boolean functions); Vasudeva et al., 2024 (tokens and patches)"
NEEDS: tuple[str, ...] = ()
#: Bits of the parity to learn.
BITS = (3, 7)


@dataclass(frozen=True)
class Setting:
    """A parity of two of `n` bits on half the cube, with and without noise; and patches of digits."""

    seeds: int = 3
    n: int = 11
    width: int = 64
    lr: float = 1e-2
    steps: int = 80
    noise: float = 0.2
    noisy_points: int = 512
    noisy_steps: int = 150
    transformer_steps: int = 0
    images: int = 2000
    image_steps: int = 400
    sigma: float = 0.5


QUICK = Setting()
FULL = Setting(seeds=8, steps=300, noisy_steps=1000, transformer_steps=300, images=3000, image_steps=1200)
#: The error on the training images at which networks are compared.
LEVEL = 0.6
#: With seeds from 100 on, the convolutional network did not reach an error of 0.5. Five from 200 on left the sign open,
#: and asked for eight. Seeds from here on had not been used.
FRESH = 300


class Patches(nn.Module):
    """A transformer over square patches of images."""

    def __init__(self, size: int, patch: int, outputs: int, channels: int = 3) -> None:
        super().__init__()
        self.cut = nn.Unfold(patch, stride=patch)
        self.body = transformer((size // patch) ** 2, channels * patch**2, outputs=outputs, width=64, layers=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.cut(x).transpose(1, 2))  # type: ignore[no-any-return]


def architectures() -> dict[str, Callable[[], nn.Module]]:
    """What learns the images of 32 x 32 pixels."""
    return {
        "images-mlp": lambda: nn.Sequential(nn.Flatten(), *tm.modules.mlp(3072, (256,), 10)),
        "images-cnn": lambda: small_cnn(3, 10, 16),
        "images-transformer": lambda: Patches(32, 8, 10),
    }


def run(setting: Setting, keep: Keep) -> Runs:
    """The parity, the parity with noise, and images for every architecture; in full, a transformer on the parity."""

    def parity(points: int, noise: float, steps: int, make: Callable[[], nn.Module]) -> tm.Trajectory:
        return _seeds(setting, lambda seed: _parity(setting, points, noise, steps, make, seed))

    wide = partial(tm.modules.mlp, setting.n, (setting.width,), 1)
    runs = {
        "parity": keep("parity", lambda: parity(2 ** (setting.n - 1), 0.0, setting.steps, wide)),
        "parity-noise": keep(
            "parity-noise", lambda: parity(setting.noisy_points, setting.noise, setting.noisy_steps, wide)
        ),
    }
    if setting.transformer_steps:
        runs["parity-transformer"] = keep(
            "parity-transformer",
            lambda: parity(2 ** (setting.n - 1), 0.0, setting.transformer_steps, lambda: Bits(setting.n)),
        )
    for name, make in architectures().items() if tm.data.is_present("cifar10") else ():
        runs[name] = keep(name, lambda make=make: _seeds(setting, lambda seed: _images(setting, make, seed)))  # type: ignore[misc]
    return runs


class Bits(nn.Module):
    """A transformer that takes every bit as a token of one feature."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.body = transformer(n, 1, width=32, layers=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x[:, :, None])  # type: ignore[no-any-return]


def _seeds(setting: Setting, one: Callable[[int], tm.Trajectory]) -> tm.Trajectory:
    return tm.stack([one(seed) for seed in range(setting.seeds)])


def _parity(
    setting: Setting, points: int, noise: float, steps: int, make: Callable[[], nn.Module], seed: int
) -> tm.Trajectory:
    data = lab.data.boolean_data(lab.data.Parity(BITS), setting.n, points, noise, seed)
    torch.manual_seed(seed)
    adam = partial(torch.optim.Adam, lr=setting.lr)
    return tm.train(
        make(),
        data,
        data,
        tm.Recipe(adam, steps=steps, batch=min(512, points)),
        watch=tm.Watch(
            when=tm.record.log_spaced(8), measures=(lab.measures.BooleanSensitivity(), lab.measures.BooleanSpectrum())
        ),
        seed=seed,
    )


def _images(setting: Setting, make: Callable[[], nn.Module], seed: int) -> tm.Trajectory:
    photographs = lab.data.cifar10("train")
    chosen = np.random.default_rng(FRESH + seed).permutation(len(photographs))[: setting.images]
    x = photographs.x[chosen].astype(np.float32) / 127.5 - 1.0
    data = tm.GroupedData(x, photographs.y[chosen], np.zeros(len(chosen), dtype=int))
    torch.manual_seed(FRESH + seed)
    return patches_run(make(), data, setting.image_steps, setting.sigma, 8, seed)


def patches_run(
    model: nn.Module, data: tm.GroupedData, steps: int, sigma: float, patch: int, seed: int
) -> tm.Trajectory:
    """A network trained on images, its error on them, and how often noise on one patch changes its decisions."""
    measure = lab.measures.NoiseSensitivity(sigma, patch=patch, repeats=1, points=60)
    return tm.train(
        model,
        data,
        data,
        tm.Recipe(partial(torch.optim.Adam, lr=1e-3), steps=steps, batch=64),
        watch=tm.Watch(when=tm.record.log_spaced(12), measures=(measure,)),
        seed=seed,
    )


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict."""
    run = runs["parity"]
    found, null = run["boolean_sensitivity"], run["boolean_sensitivity_null"]
    bits = run["bit_sensitivity"].sizes["bit"]
    target = len(BITS) / bits
    weight = run["degree_weight"].sel(degree=len(BITS))
    noisy = runs["parity-noise"]["boolean_sensitivity"].isel(time=-1)
    fitted = float(runs["parity-noise"]["error"].isel(time=-1).max())
    return (
        mean_claim(
            "Untrained networks are less sensitive than a random function that decides as often either way",
            (found / null).isel(time=0),
            "mean ratio of sensitivities",
            0.6,
            f"Their most frequent decision has {float(run['majority_share'].isel(time=0).mean()):.2f} of the cube.",
            rule="at most",
            neutral=1.0,
        ),
        share_claim(
            "A parity learned on half the cube is learned on all of it: the sensitivity becomes that of the parity",
            abs(found.isel(time=-1) - target) <= 0.005,
            f"share of seeds within 0.005 of {len(BITS)}/{bits}",
        ),
        share_claim(
            f"Its Fourier weight ends up on sets of {len(BITS)} bits",
            weight.isel(time=-1) >= 0.98,
            "share of seeds with at least 0.98 of it there",
            f"It starts with {float(weight.isel(time=0).mean()):.2f}, and a random function has "
            f"{float(run['degree_weight_null'].sel(degree=len(BITS)).isel(time=0).mean()):.2f}.",
        ),
        mean_claim(
            "Fitting noisy labels makes a network more sensitive than the clean function",
            noisy - target,
            "mean excess",
            0.02,
            f"Its error on the labels is {fitted:.2g} at most.",
            neutral=0.0,
        ),
        _matched(runs),
    )


def _matched(runs: Runs) -> Claim:
    sentence = f"At a training error of {LEVEL:g} a transformer is less sensitive to patches than other networks"
    if "images-transformer" not in runs:
        return not_run(sentence, "Needs the data of cifar10.")
    return matched(sentence, {name.removeprefix("images-"): runs[name] for name in architectures()}, LEVEL)


def matched(sentence: str, runs: Mapping[str, tm.Trajectory], level: float) -> Claim:
    """The claim that the transformer is less sensitive than all others where their training errors are this level."""
    each = {name: lab.measures.at_matched_error(run, "noise_sensitivity", level) for name, run in runs.items()}
    least = min((name for name in each if name != "transformer"), key=lambda name: float(each[name].mean()))
    return mean_claim(
        sentence,
        each[least] - each["transformer"],  # of the same images and seed
        "sensitivity of the least sensitive other network, less that of the transformer",
        0.0,
        "Mean sensitivities " + ", ".join(f"{name} {float(value.mean()):.3f}" for name, value in each.items()) + ".",
        safe=False,
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Sensitivity over training, of Boolean functions and of images."""

    names = {"parity": "clean labels", "parity-noise": "noisy labels", "parity-transformer": "transformer"}
    shown = {name: label for name, label in names.items() if name in runs}
    images = {name: name.removeprefix("images-") for name in architectures() if name in runs}
    charts = {
        "Sensitivity while a parity of two bits is learned": tm.plot.curves(
            *(runs[name] for name in shown), curve="boolean_sensitivity", labels=list(shown.values())
        )
    }
    if images:
        charts["Sensitivity to noise on one patch"] = tm.plot.curves(
            *(runs[name] for name in images), curve="noise_sensitivity", labels=list(images.values())
        )
    return charts
