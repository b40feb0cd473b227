"""domino: an MNIST digit above a CIFAR-10 photograph; do the last features keep information on the photograph?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.networks import resnet18, small_cnn
from tiltmeter_lab.shared.over_seeds import best_of_others, mean_and_error

Part = Literal["train", "test"]

TITLE = "Dominoes of MNIST and CIFAR-10: the last features lose the photograph, and when"
PAPER = "Tsoy and Konstantinov, Simplicity Bias of Two-Layer Networks beyond Linearly Separable Data (2024), section 5"
NEEDS: tuple[str, ...] = ("mnist", "cifar10")

#: The size that is asked was chosen on other seeds; seeds from here on had not been used.
FRESH = 100
#: A fall of the probe's accuracy that would matter.
FALL = 0.02
DECAY, NO_DECAY, CONTROL = "weight decay", "no weight decay", "no digits"


@dataclass(frozen=True)
class Setting:
    """How many dominoes of which size, the network, and how it is trained; rate up over an eighth, then down to zero.

    `scale` multiplies all weights at the start. The published setting was not run: on one core a step of its
    ResNet-18 takes 12 s, and 100,000 of them two weeks.
    """

    points: int = 2000
    held_out: int = 1200
    side: int = 16
    network: str = "small_cnn"
    width: int = 16
    scale: float = 1.0
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-4
    batch: int = 128
    epochs: int = 15
    evaluations: int = 7
    probe_steps: int = 200
    seeds: int = 3


QUICK = Setting()
FULL = Setting(
    *(50_000, 10_000, 32),
    network="resnet18",
    width=64,
    scale=2.0**-5,
    lr=0.125,
    epochs=256,
    evaluations=17,
    probe_steps=20_000,
    seeds=6,
)


def pictures_of(part: Part, count: int, side: int, rng: np.random.Generator) -> tuple[lab.data.Images, lab.data.Images]:
    """So many digits, padded to 32 x 32, and photographs, both shrunk to `side` pixels by averaging, standardised."""
    found = []
    for images in whole(part):
        some = rng.permutation(len(images))[:count]
        space = (32 - images.x.shape[-1]) // 2
        x = np.pad(images.x[some], (*[(0, 0)] * (images.x.ndim - 2), *[(space, space)] * 2))
        found.append(lab.data.Images(lab.data.standardised(_shrunk(x, side)), images.y[some], images.classes))
    return found[0], found[1]


@cache
def whole(part: Part) -> tuple[lab.data.Images, lab.data.Images]:
    """All digits and all photographs of one part, read once."""
    return lab.data.mnist(part), lab.data.cifar10(part)


def _shrunk(x: np.ndarray, side: int) -> np.ndarray:
    factor, rest = divmod(x.shape[-1], side)
    if rest or not factor:
        raise ValueError(f"`side` should divide {x.shape[-1]}. Found side = {side}.")
    parts = x.reshape(*x.shape[:-2], side, factor, side, factor)
    return np.asarray(parts.mean(axis=(-3, -1), dtype=np.float32))


def data(setting: Setting, seed: int, digits: bool) -> tuple[tm.GroupedData, tm.GroupedData]:
    """To train on, dominoes whose digit tells the class; to look at, dominoes whose digit is drawn at random."""
    rng = np.random.default_rng(seed)
    found = []
    parts: tuple[tuple[Part, int, float], ...] = (("train", setting.points, 1.0), ("test", setting.held_out, 0.0))
    for part, count, agreement in parts:
        easy, hard = pictures_of(part, count, setting.side, rng)
        shown = easy.x if digits else np.zeros_like(easy.x)
        found.append(lab.data.dominoes(shown, easy.y, hard.x, hard.y, agreement, seed=seed))
    return found[0], found[1]


def network(setting: Setting) -> nn.Sequential:
    """The network asked for, all its weights scaled."""
    made = {
        "small_cnn": partial(small_cnn, 3, 10, setting.width, normalise=True),
        "resnet18": partial(resnet18, 3, 10, setting.width),
    }
    model = made[setting.network]()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(setting.scale)
    return model


def train(setting: Setting, seed: int, weight_decay: float, digits: bool) -> tm.Trajectory:
    """One network, looked at and probed while it trains."""
    points, held_out = data(setting, seed, digits)
    torch.manual_seed(seed)
    model, sampling = network(setting), tm.training.Epochs()
    x, y = points.tensors()
    total = setting.epochs * sampling.batches(points, setting.batch)
    places = sampling.in_turn(points, setting.batch, seed)
    optimizer = torch.optim.SGD(
        model.parameters(), setting.lr, setting.momentum, nesterov=True, weight_decay=weight_decay
    )
    warm = max(1, total // 8)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm, (total - step) / max(1, total - warm))
    )
    steps = tm.record.at(sorted({0, *np.geomspace(4, total, setting.evaluations - 1).round().astype(int).tolist()}))
    measure = tm.measures.Sometimes(lab.measures.LastLayerProbe(most_steps=setting.probe_steps), steps)
    settings = {"optimizer": {"class": "SGD", "lr": setting.lr, "weight_decay": weight_decay}, "digits": digits}
    with tm.Probe(
        model,
        held_out,
        watch=tm.Watch(when=steps, measures=(measure,)),
        loss=nn.CrossEntropyLoss(),
        seed=seed,
        settings=settings,
        budget=None,
    ) as probe:
        for step in range(total):
            probe(step)
            model.train()
            batch = places(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch].long()).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        probe.evaluate(total, last=True)
    return probe.trajectory()


def run(setting: Setting, keep: Keep) -> Runs:
    """Seeds with weight decay, without, and (the control) with weight decay and no digits."""
    arms = {DECAY: (setting.weight_decay, True), NO_DECAY: (0.0, True), CONTROL: (setting.weight_decay, False)}

    def make(decay: float, digits: bool) -> tm.Trajectory:
        return tm.stack([train(setting, seed, decay, digits) for seed in range(FRESH, FRESH + setting.seeds)])

    return {name: keep(name, partial(make, *arm)) for name, arm in arms.items()}


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The digit decides; features lose the photograph late, but not without digits; and the effect of weight decay."""
    seeds = len(runs[DECAY].origin.seeds)
    error = runs[DECAY]["error"].isel(time=-1).sel(group="disagree")
    falls = {name: _fall(one) for name, one in runs.items()}
    more = falls[DECAY] - falls[NO_DECAY]
    return (
        Claim(
            "A network trained on dominoes answers by the digit",
            float(error.mean()),
            "error where the digit disagrees with the photograph",
            0.8,
            error=mean_and_error(error)[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The last features hold the photograph best in the middle of training and less at the end",
            float(falls[DECAY].mean()),
            "fall of the probe's accuracy from its best evaluation, found on the other half of the seeds, to the last",
            FALL,
            _told(runs),
            error=mean_and_error(falls[DECAY])[1],
            seeds=seeds,
            safe=False,
            neutral=0.0,
        ),
        Claim(
            "Without digits the last features do not lose the photograph",
            float(falls[CONTROL].mean()),
            "fall of the probe's accuracy from its best evaluation, found on the other half of the seeds, to the last",
            FALL,
            rule="at most",
            error=mean_and_error(falls[CONTROL])[1],
            seeds=seeds,
            safe=False,
        ),
        Claim(
            "The late fall is due to the data, not to weight decay",
            float(falls[NO_DECAY].mean()),
            "fall of the probe's accuracy without weight decay",
            FALL,
            f"With weight decay it is larger by {_mean(more)}.",
            error=mean_and_error(falls[NO_DECAY])[1],
            seeds=seeds,
            safe=False,
            neutral=0.0,
        ),
    )


def _fall(one: tm.Trajectory) -> np.ndarray:
    """Of every seed, from the evaluation that is best on the other half of the seeds to the last."""
    return best_of_others(one["probe_accuracy"])


def _mean(values: np.ndarray) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:.3f} ± {error:.3f}"


def _told(runs: Runs) -> str:
    parts = []
    for name, one in runs.items():
        accuracy = one["probe_accuracy"].mean("seed")
        best = accuracy.isel(time=int(np.argmax(accuracy.values)))
        parts.append(
            f"{name}: {float(accuracy[0]):.3f} at the start, {float(best):.3f} at step {float(best.time):.0f}, "
            f"{float(accuracy[-1]):.3f} at the end"
        )
    return "; ".join(parts) + "."


def pictures(runs: Runs) -> dict[str, Any]:
    """What the probe finds in all arms, and the error of the network."""

    title = "A linear probe of the last features, digits at random"
    return {
        title: tm.plot.curves(*runs.values(), curve="probe_accuracy", labels=list(runs), title=title),
        "Error where digit and photograph agree or not": tm.plot.curves(runs[DECAY], curve="error", title=DECAY),
    }
