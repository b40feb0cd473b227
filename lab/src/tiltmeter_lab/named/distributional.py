"""Networks learn distributions of increasing complexity (Refinetti et al., 2023; Belrose et al., 2024), on digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim, not_run
from tiltmeter_lab.shared.arms import made, read_runs, train_arms
from tiltmeter_lab.shared.over_seeds import best_of_others, mean_and_error, mean_claim

REAL = "real"

TITLE = "Networks learn low-order statistics first, and leave them later"
PAPER = "Refinetti, Ingrosso and Goldt (2023); Belrose et al. (2024)"
NEEDS: tuple[str, ...] = ()

#: Added to variances, as the paper does, for pixels between 0 and 1.
RIDGE = 1e-3
ARMS: Mapping[str, lab.data.Clone | None] = {
    REAL: None,
    "class covariance": lab.data.ClassCovariance(RIDGE),
    "shared covariance": lab.data.SharedCovariance(RIDGE),
    "isotropic": lab.data.Isotropic(),
    "marginals": lab.data.IndependentMarginals(),
}


@dataclass(frozen=True)
class Setting:
    """64-128-128-10 network, plain SGD; one network per arm and seed, same start and same batches for all arms."""

    train: int = 1200
    width: int = 128
    lr: float = 0.1
    batch: int = 64
    steps: int = 2000
    early: int = 80
    photographs: int = 5000
    photograph_steps: int = 3000
    seeds: int = 5


QUICK = Setting()
FULL = Setting(photographs=20_000, photograph_steps=40_000, seeds=8)
EDIT = "transport edit"
#: With seeds from 100 on, the share was still rising after 5,000 steps; seeds from here on had not been used.
FRESH = 200


def run(setting: Setting, keep: Keep) -> Runs:
    """`arms`: trained on clones, tested on real points. `clones`: trained on real points, tested on clones."""
    both: dict[str, tm.Trajectory] = {}

    def made_now() -> dict[str, tm.Trajectory]:
        if not both:
            both.update(_train(setting))
        return both

    runs = {name: keep(name, lambda n=name: made_now()[n]) for name in ("arms", "clones")}  # type: ignore[misc]
    if tm.data.is_present("cifar10"):
        runs["photographs"] = keep("photographs", lambda: _photographs(setting))
    return runs


def _photographs(setting: Setting) -> tm.Trajectory:
    """Networks on CIFAR-10, shrunk to 8 x 8 in colour, and what they call points moved to another class."""
    parts = lab.data.cifar10("train"), lab.data.cifar10("test")
    small = [part.x.reshape(-1, 3, 8, 4, 8, 4).mean((3, 5), dtype=np.float32).reshape(len(part), -1) for part in parts]
    held_out = tm.GroupedData(small[1][:4000] / 255.0, parts[1].y[:4000], np.zeros(4000, dtype=int))
    runs = []
    for seed in range(FRESH, FRESH + setting.seeds):
        chosen = np.random.default_rng([seed, 0]).permutation(len(parts[0]))[: setting.photographs]
        train = tm.GroupedData(small[0][chosen] / 255.0, parts[0].y[chosen], np.zeros(len(chosen), dtype=int))
        edits = {EDIT: lab.measures.CLONES[EDIT]}
        torch.manual_seed(seed)
        runs.append(
            tm.train(
                _network(setting, train.x.shape[1]),
                train,
                held_out,
                tm.Recipe(lr=setting.lr, steps=setting.photograph_steps, batch=setting.batch),
                watch=tm.Watch(
                    when=tm.record.log_spaced(5),
                    measures=(lab.measures.CloneAccuracy(edits, fit=train, seed=seed),),
                ),
                seed=seed,
            )
        )
    return tm.stack(runs)


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Clones do as well early and fall behind in order; low-order statistics are learned first."""
    arms = runs["arms"]["accuracy"]
    early = int(runs["arms"].origin.settings["setting"]["early"])  # type: ignore[index, call-overload, arg-type]
    last = arms.isel(time=-1)
    gap = last.sel(arm=REAL) - last
    seeds = arms.sizes["seed"]
    gaussian, shared, isotropic = "class covariance", "shared covariance", "isotropic"
    ahead = mean_and_error(arms.sel(time=early, arm=REAL) - arms.sel(time=early, arm=gaussian))
    steps = [last.sel(arm=a) - last.sel(arm=b) for a, b in pairwise((REAL, gaussian, shared, isotropic))]
    curves = runs["clones"]["clone_loss"]
    marginal, real = curves.sel(clone="marginals").mean("seed"), curves.sel(clone=REAL)
    rise = _rise(curves.sel(clone="marginals"))
    return (
        Claim(
            f"At step {early} a network trained on the Gaussian clone does as well as one trained on real points",
            abs(ahead[0]),
            "difference in accuracy on real points",
            0.03,
            rule="at most",
            error=ahead[1],
            seeds=seeds,
        ),
        mean_claim(
            "In the end it has fallen behind", gap.sel(arm=gaussian), "difference in accuracy", 0.01, neutral=0.0
        ),
        mean_claim(
            "It falls behind by little: most of what is learned is in means and covariances",
            gap.sel(arm=gaussian),
            "difference in accuracy",
            0.05,
            rule="at most",
        ),
        mean_claim(
            "An isotropic clone falls behind much more",
            gap.sel(arm=isotropic),
            "difference in accuracy",
            0.06,
            neutral=0.0,
        ),
        mean_claim(
            "The more statistics a clone shares with the data, the better it ends: class, shared, isotropic covariance",
            min(steps, key=lambda step: float(step.mean())),
            "smallest step down in accuracy along real, class, shared, isotropic",
            0.0,
            "In the end: " + ", ".join(f"{name} {float(last.sel(arm=name).mean()):.3f}" for name in ARMS) + ".",
        ),
        Claim(
            "Trained on real points, the loss on independent marginals falls and then rises",
            np.divide(*mean_and_error(rise)),
            "rise from the lowest to the last loss, in standard errors over seeds",
            2.0,
            f"Lowest {float(marginal.min()):.3f} at step {int(marginal.idxmin('time'))}, last "
            f"{float(marginal.isel(time=-1)):.3f}; on real points it ends at {float(real.isel(time=-1).mean()):.3f}.",
            seeds=seeds,
            error=1.0,
            neutral=0.0,
        ),
        mean_claim(
            "Meanwhile the loss on real points keeps falling",
            real.isel(time=-1) / real.sel(time=int(marginal.idxmin("time"))),
            "last loss over that at the step where marginals are lowest, mean over seeds",
            1.0,
            rule="at most",
        ),
        _edited(runs),
    )


def _edited(runs: Runs) -> Claim:
    sentence = "Photographs moved to the mean and covariance of another class are called by it early, less so late"
    if "photographs" not in runs:
        return not_run(sentence, "Needs the data of cifar10.")
    edit = runs["photographs"]["clone_accuracy"].sel(clone=EDIT)
    falls, mean = best_of_others(edit), edit.mean("seed")
    return Claim(
        sentence,
        float(falls.mean()),
        "fall of the share called by the target class, from its peak on the other half of the seeds to the end",
        0.01,
        f"It peaks at {float(mean.max()):.2f} and ends at {float(mean.isel(time=-1)):.2f}.",
        error=mean_and_error(falls)[1],
        seeds=len(falls),
        safe=False,
        neutral=0.0,
    )


def _rise(loss: xr.DataArray) -> xr.DataArray:
    """From the lowest to the last loss of every seed, the lowest found on the *other* seeds: the lowest of noisy values
    lies below the last one by choice alone, and would make a rise of any curve."""
    values = loss.transpose("time", "seed").values
    lowest = (values.sum(1, keepdims=True) - values).argmin(0)
    return xr.DataArray(values[-1] - values[lowest, np.arange(len(lowest))], dims="seed")


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Accuracy of arms on real points, and loss of the network trained on real points on clones."""
    loss = runs["clones"]["clone_loss"]
    shown = loss.sel(clone=[REAL, "class covariance", "shared covariance", "isotropic", "marginals"])
    return {
        "Trained on clones, tested on real digits": lab.plot.labelled_lines(
            runs["arms"]["accuracy"], "arm", null=0.1, title="Trained on clones, tested on real digits"
        ),
        "Trained on real digits, tested on clones": lab.plot.labelled_lines(
            shown.isel(time=slice(shown.sizes["time"] // 2, None)),
            "clone",
            title="Trained on real digits, tested on clones",
        ),
    }


def _digits(setting: Setting, seed: int) -> tuple[tm.GroupedData, tm.GroupedData]:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    order = np.random.default_rng([seed, 0]).permutation(len(bunch.target))
    x, y = (bunch.data[order] / 16.0).astype(np.float32), bunch.target[order]
    group = np.zeros(len(y), dtype=int)
    cut = setting.train
    return tm.GroupedData(x[:cut], y[:cut], group[:cut]), tm.GroupedData(x[cut:], y[cut:], group[cut:])


def _network(setting: Setting, inputs: int = 64) -> nn.Sequential:
    """Make a network with He's initialisation: with PyTorch's default the first fifty steps are a plateau."""
    model = tm.modules.mlp(inputs, (setting.width, setting.width), 10)
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return model


def _train(setting: Setting) -> dict[str, tm.Trajectory]:
    seeds = list(range(setting.seeds))
    halves = {seed: _digits(setting, seed) for seed in seeds}
    arms = list(ARMS)
    # Runs are ordered arm by arm: all seeds of the first, then of the second.
    sets = [
        halves[seed][0] if clone is None else clone(halves[seed][0], seed) for clone in ARMS.values() for seed in seeds
    ]
    x = torch.stack([torch.as_tensor(data.x) for data in sets])
    y = torch.stack([torch.as_tensor(data.y) for data in sets])
    starts = made(lambda: _network(setting), seeds)
    batches = torch.stack(
        [
            torch.as_tensor(np.random.default_rng([seed, 1]).integers(0, setting.train, (setting.steps, setting.batch)))
            for seed in seeds
        ]
    ).repeat(len(arms), 1, 1)
    rows = torch.arange(len(sets))[:, None]

    def batch(step: int) -> tuple[Tensor, Tensor]:
        return x[rows, batches[:, step]], y[rows, batches[:, step]]

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(outputs.transpose(1, 2), labels, reduction="none").mean(1)

    # Clones of the held-out points use the statistics of the training points, which are estimated better.
    measures = {seed: lab.measures.CloneAccuracy(lab.measures.CLONES, fit=halves[seed][0], seed=seed) for seed in seeds}
    evaluated = {seed: halves[seed][1] for seed in seeds}

    def read(stacked: tm.training.Stacked) -> dict[str, xr.DataArray]:
        right = np.empty((len(arms), len(seeds)))
        for seed in seeds:
            decided = stacked.evaluate(torch.as_tensor(evaluated[seed].x)).argmax(2).numpy()
            right[:, seed] = (decided[seed :: len(seeds)] == evaluated[seed].y).mean(1)
        clones = read_runs(stacked, {seed: seed for seed in seeds}, lambda seed: (measures[seed],), evaluated)
        words = {"long_name": "accuracy on real points", "better": "higher", "null": "0.1, chance"}
        return {"accuracy": xr.DataArray(right, {"arm": arms, "seed": seeds}, ("arm", "seed"), attrs=words), **clones}

    origin = tm.record.Origin("training", settings={"setting": asdict(setting)}, seeds=tuple(seeds))
    evaluations = sorted({*tm.record.log_spaced(5).steps(setting.steps), setting.early, setting.steps})
    # Every arm starts from the weights of its seed.
    found = train_arms(starts * len(arms), batch, loss, setting.lr, evaluations, read, origin)
    mine = {"accuracy": found["accuracy"]}
    return {"arms": found.replace(mine), "clones": found.replace({n: c for n, c in found.items() if n not in mine})}
