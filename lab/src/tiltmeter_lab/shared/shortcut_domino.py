"""Digits next to an easy one-hot block: how much of the digit is in the last layer once the block is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim


@dataclass(frozen=True)
class Domino:
    """Two hidden layers, weights `shrink` times PyTorch's, SGD with Nesterov momentum, an easy block of `amplitude`."""

    hidden: tuple[int, ...] = (64, 32)
    shrink: float = 0.5
    amplitude: float = 3.0
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch: int = 128
    steps: int = 300
    early: int = 20
    fitted: int = 60


def arms(setting: Domino) -> dict[str, dict[str, float]]:
    """Return the settings that differ between the runs."""
    return {
        "domino": {},
        "domino-no-decay": {"weight_decay": 0.0},
        "domino-control": {"amplitude": 0.0},
        "domino-large-weights": {"shrink": 2.0 * setting.shrink},
    }


def trained(setting: Domino, seeds: int) -> tm.Trajectory:
    """All seeds of one arm."""
    return tm.stack([_one(setting, seed) for seed in range(seeds)])


def _one(setting: Domino, seed: int) -> tm.Trajectory:
    learned, apart, cells = digits_with_block(setting.amplitude, seed)
    torch.manual_seed(seed)
    model = tm.modules.mlp(learned.x.shape[1], setting.hidden, 10)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(setting.shrink)
    evaluations = (0, setting.early, setting.fitted, 2 * setting.fitted, setting.steps)
    return tm.train(
        model,
        learned,
        apart,
        tm.Recipe(
            lr=setting.lr,
            momentum=setting.momentum,
            nesterov=True,
            weight_decay=setting.weight_decay,
            steps=setting.steps,
            batch=setting.batch,
            loss=nn.CrossEntropyLoss(),
        ),
        watch=tm.Watch(
            when=tm.record.at(evaluations),
            measures=(
                lab.measures.LastLayerProbe(seed=seed, most_steps=300),
                lab.measures.CueAdoption(("easy block", "digit"), cells),
            ),
        ),
        seed=seed,
    )


def digits_with_block(amplitude: float, seed: int) -> tuple[tm.GroupedData, tm.GroupedData, tm.GroupedData]:
    """Return training data (block and digit agree), held-out data (independent), and these as cells for the cues."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.random.default_rng(seed).permutation(len(bunch.target))
    first, second = order[:1000], order[1000:]
    y, x = bunch.target, (bunch.data / 16.0).astype(np.float32)
    block = lab.data.one_hot_block(np.arange(10), amplitude, 10).astype(np.float32)

    def made(places: np.ndarray, agreement: float, cells: bool = False) -> tm.GroupedData:
        return lab.data.dominoes(block, np.arange(10), x[places], y[places], agreement, cells, seed)

    return made(first, 1.0), made(second, 0.0), made(second, 0.0, cells=True)


def claims(runs: Runs, setting: Domino) -> tuple[Claim, ...]:
    """Return the claims about the linear probe of the last layer."""
    found = {name: runs[name]["probe_accuracy"] for name in arms(setting)}
    probe = found["domino"]
    early, fitted, last = (probe.sel(time=step) for step in (setting.early, setting.fitted, int(probe.time[-1])))
    adopted = runs["domino"]["cue_adoption"].sel(cue="easy block").isel(time=-1)
    falls = {
        name: found[name].sel(time=setting.fitted) - found[name].isel(time=-1) for name in ("domino", "domino-no-decay")
    }
    large = found["domino-large-weights"]
    return (
        share_claim(
            "Decisions follow the easy block where it disagrees with the digit",
            adopted >= 0.9,
            "share of seeds in which 0.9 of them do",
            f"The smallest share of decisions is {float(adopted.min()):.2f}.",
        ),
        mean_claim(
            "The digit is lost from the last layer while the easy block is being fitted",
            early - fitted,
            f"mean fall of the probe's accuracy from step {setting.early} to {setting.fitted}",
            0.2,
            f"With weights of twice the size at the start it is {float(_fall(large, setting).mean()):.2f} on average.",
            neutral=0.0,
        ),
        mean_claim(
            "At the end it holds less of the digit than half",
            last,
            "mean accuracy of the probe",
            0.5,
            f"Untrained features give {float(probe.isel(time=0).mean()):.2f} on average.",
            rule="at most",
        ),
        mean_claim(
            "Without the easy block the last layer learns the digit",
            found["domino-control"].isel(time=-1),
            "mean accuracy of the probe",
            0.9,
        ),
        mean_claim(
            "The bias grows late in training without weight decay too",
            falls["domino-no-decay"],
            f"mean fall of the probe's accuracy after step {setting.fitted} without weight decay",
            0.02,
            f"With weight decay it is {float(falls['domino'].mean()):.3f}.",
            safe=False,
            neutral=0.0,
        ),
    )


def _fall(probe: xr.DataArray, setting: Domino) -> xr.DataArray:
    return probe.sel(time=setting.early) - probe.sel(time=setting.fitted)
