"""Two consequences of the principal-component bias: shuffled labels are learned late, and stopping early helps."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.arrival import first_below

#: Where the signal lies among the components, and which sign of the gain is expected.
LEADING, TRAILING = "early stopping", "early stopping, signal in small components"
REAL, SHUFFLED = "digits, true labels", "digits, shuffled labels"
#: Variance of the label noise over that of the signal, and the share of the components that carry the signal.
NOISE, CARRIERS = 2.0, 0.25


def noisy_problem(x: np.ndarray, seed: int, leading: bool) -> tuple[tm.GroupedData, tm.GroupedData]:
    """The same centred inputs with noisy labels, to train on, and with clean ones, to look at.

    The target has variance 1, in equal parts along the quarter of the components (columns of `x`, the largest first)
    that are the largest or the smallest.
    """
    rng = np.random.default_rng([seed, 11])
    inputs = x.shape[1]
    count = max(1, int(CARRIERS * inputs))
    chosen = np.arange(inputs)[:count] if leading else np.arange(inputs)[-count:]
    clean = (x[:, chosen] / x[:, chosen].std(0) * rng.choice([-1.0, 1.0], count)).sum(1) / np.sqrt(count)
    noise = rng.normal(size=len(x)) * np.sqrt(NOISE)
    names = ["all"] * len(x)
    return tm.GroupedData(x, clean + noise - noise.mean(), names), tm.GroupedData(x, clean, names)


def stopped_run(model: nn.Module, x: np.ndarray, seed: int, leading: bool, lr: float, steps: int) -> tm.Trajectory:
    """Full-batch training on noisy labels; the loss is that on clean ones."""
    noisy, clean = noisy_problem(x, seed, leading)
    recipe = tm.Recipe(lr=lr, steps=steps, batch=len(noisy))
    return tm.train(
        model,
        noisy,
        clean,
        recipe,
        watch=tm.Watch(when=tm.record.every(10), measures=(lab.measures.ComponentError(),)),
        seed=seed,
    )


def digits_run(shuffle: bool, steps: int, seeds: int) -> tm.Trajectory:
    """The training loss of networks on digits, with true labels or with the same labels at random images."""
    runs = []
    for seed in range(seeds):
        data, _ = tm.data.plain_digits(seed=seed)
        y = np.random.default_rng([seed, 12]).permutation(data.y) if shuffle else data.y
        points = tm.GroupedData(data.x, y, ["all"] * len(data))
        torch.manual_seed(seed)
        recipe = tm.Recipe(partial(torch.optim.SGD, lr=0.2), steps=steps, batch=50)
        runs.append(
            tm.train(
                tm.modules.mlp(64, (64, 64), 10),
                points,
                points,
                recipe,
                watch=tm.Watch(when=tm.record.log_spaced(30)),
                seed=seed,
            )
        )
    return tm.stack(runs)


def label_share(shuffle: bool, components: int = 8) -> float:
    """Of the variance of one-hot labels along all components of the digits, the part along the leading ones."""
    data, _ = tm.data.plain_digits(seed=0)
    y = np.random.default_rng([0, 12]).permutation(data.y) if shuffle else data.y
    x = np.asarray(data.x, dtype=float)
    left, values, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    hot = np.eye(10)[np.asarray(y, dtype=int)]
    along = ((left[:, values > 1e-6 * values[0]].T @ (hot - hot.mean(0))) ** 2).sum(1)
    return float(along[:components].sum() / along.sum())


def shuffled_claim(runs: Runs) -> Claim:
    """Steps to nine tenths of the first loss, with shuffled and with true labels."""
    late, soon = (
        first_below(runs[name]["loss"].isel(group=0), 0.9 * runs[name]["loss"].isel(group=0, time=0))
        for name in (SHUFFLED, REAL)
    )
    last = float(runs[SHUFFLED]["loss"]["time"][-1])
    ratio = np.minimum(late, last) / soon
    where = f"Of the variance of labels, {label_share(True):.0%} and {label_share(False):.0%} lie along 8 components."
    return Claim(
        "Shuffled labels are learned later than true ones, because they lie along small components",
        float(ratio.mean()),
        "mean ratio of steps to nine tenths of the first training loss, shuffled to true (at most all steps)",
        3.0,
        where,
        error=float(ratio.std(ddof=1) / np.sqrt(ratio.size)) if ratio.size > 1 else None,
        seeds=int(ratio.size),
        safe=False,
        neutral=1.0,
    )


def gain_of_stopping(run: tm.Trajectory) -> np.ndarray:
    """The loss on clean labels at its best evaluation over that at the end, one number for each seed."""
    loss = run["loss"].isel(group=0)
    return np.asarray((loss.min("time") / loss.isel(time=-1)).values)


def stopping_claims(runs: Runs) -> tuple[Claim, Claim]:
    """Where the signal lies along large components stopping helps; where it lies along small ones it does not."""
    gains = {name: gain_of_stopping(runs[name]) for name in (LEADING, TRAILING)}
    errors = {name: float(one.std(ddof=1) / np.sqrt(len(one))) if len(one) > 1 else None for name, one in gains.items()}
    what = "mean over seeds of the loss on clean labels at the best step over that at the end"
    return (
        Claim(
            "With noisy labels, stopping early helps where the signal lies along the large components",
            float(gains[LEADING].mean()),
            what,
            0.75,
            rule="at most",
            error=errors[LEADING],
            seeds=len(gains[LEADING]),
            safe=False,
            neutral=1.0,
        ),
        Claim(
            "Control: stopping early does not help where the signal lies along the small components",
            float(gains[TRAILING].mean()),
            what,
            0.9,
            error=errors[TRAILING],
            seeds=len(gains[TRAILING]),
            safe=False,
        ),
    )
