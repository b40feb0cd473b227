"""line-spectrum: how fast a model's outputs vary along lines between inputs (Zhang 2021; Fridovich-Keil 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.measures.task import Task

Path: TypeAlias = Literal["within", "between", "random"]
PATHS: tuple[Path, ...] = ("within", "between", "random")


Window: TypeAlias = Literal["none", "hann"]
Detrend: TypeAlias = Literal["none", "mean", "linear"]

#: Smaller shares of the energy are rounding errors and are set to this value, to avoid the logarithm of zero.
ROUNDING = float(np.finfo(np.float64).eps) ** 2
#: The logarithm that means no energy.
FLOOR = float(np.log(ROUNDING))


#: What is transformed: scores, probabilities of the classes, or their distance from those at the start of the line.
Signal: TypeAlias = Literal["logits", "probabilities", "distance"]
#: Input numbers that are made together.
TOGETHER = 2**23


@dataclass(frozen=True)
class LineSpectrum:
    """Energy A_k of a model's outputs along lines, averaged over outputs and lines, for every kind of path.

    >>> from tiltmeter.data.public.digits import digits
    >>> from tiltmeter_lab.measures.measure import measure
    >>> found = measure(LineSpectrum(lines=8), torch.nn.Linear(64, 10), digits()[1])
    >>> bool(np.allclose(found["energy_ratio"], found["energy_ratio_null"], atol=1e-3))  # linear: nothing but the ramp
    True

    `line_energy` is A_k itself, one-sided; `energy_ratio` is R_k = log(A_k / sum_j A_j); `line_frequency` is the mean
    of k weighted by A_k (k from 1), in periods per line; `path_length` is the mean length of the lines in input units.
    The null values are those of a model whose logits are linear along every line and equal to this model's at both
    ends. Such a ramp leaks into all frequencies, and hides a small signal unless it is windowed and detrended.

    You can compare numbers only if all options are the same. Frequencies count periods per *line*, not per unit of
    length.

    What it does not mean: it does *not* say that the model is right, or that a low frequency is simple in another
    sense. Lines leave the region of the data, and the model was never trained there.

    Args:
        paths: Kinds of lines: to a point of the same class, of another class, or in a random direction.
        lines: Lines of each kind.
        points: Points on a line, without its end.
        length: Length of the lines in input units; None: all the way to the other point.
        window: Window before the transform, "none" or "hann".
        detrend: What is subtracted before the transform: "none", "mean" or a "linear" fit.
        constant: Whether k = 0, which dominates, is included in the ratio.
        signal: Logits, probabilities, or the distance of the probabilities from the start of the line.
        seed: Seed of the lines, the same at every evaluation.
    """

    paths: tuple[Path, ...] = ("within", "between")
    lines: int = 128
    points: int = 64
    length: float | None = None
    window: Window = "none"
    detrend: Detrend = "none"
    constant: bool = True
    signal: Signal = "logits"
    seed: int = 0

    title: ClassVar[str] = "how fast outputs vary along lines between inputs"
    takes: ClassVar[str] = "inputs that are numbers, not tokens; classes for paths within and between them"
    exact: ClassVar[str] = "for whole periods per line; otherwise a window trades leakage for resolution"
    absent: ClassVar[str] = "a linear model shows only the leakage of a ramp"

    def __post_init__(self) -> None:
        for name, allowed in (
            ("window", ("none", "hann")),
            ("detrend", ("none", "mean", "linear")),
            ("signal", ("logits", "probabilities", "distance")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` should be one of {', '.join(allowed)}. Found {getattr(self, name)!r}.")
        if not self.paths or set(self.paths) - set(PATHS) or len(set(self.paths)) < len(self.paths):
            raise ValueError(f"`paths` should be different ones of {', '.join(PATHS)}. Found paths = {self.paths}.")
        if self.lines < 1 or self.points < 4:
            raise ValueError(
                f"`lines` should be at least 1 and `points` 4. Found lines = {self.lines}, points = {self.points}."
            )
        if self.length is not None and not self.length > 0:
            raise ValueError(f"`length` should be positive. Found length = {self.length}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if not snapshot.model.x.is_floating_point():
            raise ValueError("Lines need inputs that are numbers. Found integer inputs (tokens).")
        if not snapshot.task.decides and set(self.paths) != {"random"}:
            raise ValueError('A regression has no classes: `paths` should be ("random",).')
        energy, null, lengths = (
            np.stack(each) for each in zip(*(self._of(snapshot, p) for p in self.paths), strict=True)
        )
        path = {"path": np.asarray(self.paths)}
        wave = {**path, "frequency": np.arange(0 if self.constant else 1, self.points // 2 + 1)}
        linear = "of logits linear along the lines"
        found = {}
        for suffix, values, said in (("", energy, ""), ("_null", null, f", {linear}")):
            found[f"energy_ratio{suffix}"] = snapshot.reading(
                f"energy_ratio{suffix}",
                energy_ratio(values, self.constant),
                wave,
                long_name=f"log share of energy at a frequency along lines{said}",
                better="neither",
            )
            found[f"line_energy{suffix}"] = snapshot.reading(
                f"line_energy{suffix}",
                np.ascontiguousarray(values[:, 0 if self.constant else 1 :]),
                wave,
                long_name=f"energy at a frequency along lines{said}",
                better="neither",
            )
            found[f"line_frequency{suffix}"] = snapshot.reading(
                f"line_frequency{suffix}",
                mean_frequency(values),
                path,
                long_name=f"mean frequency along lines, periods per line{said}",
                better="neither",
            )
        found["path_length"] = snapshot.reading(
            "path_length",
            lengths,
            path,
            long_name="mean length of the lines, in input units",
            better="neither",
            null="none: it is a property of the data",
        )
        return found

    def passes(self, snapshot: Snapshot) -> float:
        """The number of points of all lines divided by the number of held-out points; the ends are needed for the
        null value.
        """
        return len(self.paths) * self.lines * (self.points + 1) / len(snapshot.data)

    def _of(self, snapshot: Snapshot, path: Path) -> tuple[np.ndarray, np.ndarray, float]:
        """Energy of the model, energy of the linear null model, and mean length, for one kind of path."""
        seen = snapshot.model
        x = seen.x.flatten(1)
        places = x.double().cpu().numpy()
        start, end = line_ends(places, snapshot.data.y, path, self.lines, self.length, self.seed)
        length = float(np.linalg.norm(end - start, axis=1).mean())
        first, last = (torch.as_tensor(side, dtype=x.dtype, device=x.device) for side in (start, end))
        # One point more than the transform uses: the end of the line, which the linear null model needs.
        t = torch.arange(self.points + 1, dtype=x.dtype, device=x.device) / self.points
        block = max(1, TOGETHER // (len(t) * x.shape[1]))
        parts = []
        for begin in range(0, self.lines, block):
            a, b = first[begin : begin + block, None], last[begin : begin + block, None]
            inputs = (a + t[:, None] * (b - a)).reshape(-1, *seen.x.shape[1:])
            parts.append(seen.scores(inputs).double().cpu().reshape(len(a), len(t), -1))
        scores = torch.cat(parts)
        ramp = scores[:, :1] + (scores[:, -1:] - scores[:, :1]) * t.double().cpu()[:, None]
        signals = (signal_of(each[:, :-1], snapshot.task, self.signal).cpu().numpy() for each in (scores, ramp))
        model, null = (line_energy(each.transpose(0, 2, 1), self.window, self.detrend) for each in signals)
        return model, null, length


def signal_of(scores: Tensor, task: Task, signal: Signal) -> Tensor:
    """The signal to be transformed, for scores (lines, points, outputs); probabilities sum to one over outputs.

    >>> ten = Task(10, tuple(range(10)), None, "softmax")
    >>> signal_of(torch.zeros(1, 3, 10), ten, "probabilities").sum(-1).round(decimals=5).tolist()
    [[1.0, 1.0, 1.0]]
    """
    if signal == "logits":
        return scores
    if task.link == "softmax":
        chance = torch.softmax(scores, dim=-1)
    elif task.link == "sigmoid":
        chance = torch.sigmoid(scores)
    elif task.link == "probability":
        chance = scores
    else:
        raise ValueError(f'A model with a {task.link} link has no probabilities: `signal` should be "logits".')
    if signal == "probabilities":
        return chance
    distance: Tensor = torch.linalg.vector_norm(chance - chance[:, :1], dim=-1, keepdim=True)
    return distance


def line_ends(
    x: np.ndarray, y: np.ndarray, path: Path, lines: int, length: float | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each line, each (lines, inputs); the start is one of the points.

    >>> start, end = line_ends(np.eye(4), np.array([0, 0, 1, 1]), "within", 3, None, seed=0)
    >>> ((end - start) ** 2).sum(1).tolist()
    [2.0, 2.0, 2.0]

    The line ends at another point of the same class ("within"), at a point of another class ("between"), or in a random
    direction at the mean distance between two points ("random"). With `length`, it goes that far in the same direction.
    """
    rng = np.random.default_rng(seed)
    if path == "random":
        first, second = rng.integers(0, len(x), (2, lines))
        direction = rng.normal(size=(lines, x.shape[1]))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        if length is None:
            apart = np.linalg.norm(x[first] - x[second], axis=1)[first != second]
            if not len(apart) or not apart.mean() > 0:
                raise ValueError(
                    "`length` should be given for random lines where no two points differ. Found length = None."
                )
            length = float(apart.mean())
        return x[first], x[first] + length * direction
    first, second = _pairs(y, path, lines, rng)
    start, end = x[first], x[second]
    if length is not None:
        apart = np.linalg.norm(end - start, axis=1, keepdims=True)
        end = start + length * (end - start) / np.where(apart > 0, apart, 1.0)
    return start, end


def _pairs(y: np.ndarray, path: Path, lines: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Indices of two different points with equal or with different labels; any point that has such a partner may be a
    start.
    """
    labels, codes = np.unique(y, return_inverse=True)
    counts = np.bincount(codes)
    partners = counts[codes] - 1 if path == "within" else len(y) - counts[codes]
    able = np.flatnonzero(partners > 0)
    if not len(able):
        wanted = "two points of one class" if path == "within" else "points of two classes"
        raise ValueError(f"Paths {path!r} should have {wanted}. Found {len(y)} points of {len(labels)} classes.")
    first = rng.choice(able, lines)
    order = np.argsort(codes, kind="stable")
    begins = np.concatenate([[0], np.cumsum(counts)])
    place = np.empty(len(y), dtype=np.int64)
    place[order] = np.arange(len(y))
    # The nth partner in an order in which each class is contiguous: skip the point itself, or its whole class.
    nth = (rng.random(lines) * partners[first]).astype(np.int64)
    own = begins[codes[first]]
    if path == "within":
        return first, order[own + nth + (own + nth >= place[first])]
    return first, order[nth + np.where(nth >= own, counts[codes[first]], 0)]


def line_energy(signals: np.ndarray, window: Window = "none", detrend: Detrend = "none") -> np.ndarray:
    """A_k for k = 0 ... N/2: squared magnitude of the Fourier transform along the last axis, averaged over all others.

    >>> t = np.arange(64) / 64
    >>> line_energy(np.cos(2 * np.pi * 5 * t))[[0, 5]].round(6).tolist()
    [0.0, 0.25]

    One-sided: every pair of frequencies k and -k counts once. Signals are first detrended, then windowed.
    """
    values = np.asarray(signals, dtype=float)
    count = values.shape[-1]
    before = float((values**2).mean())
    if detrend == "mean":
        values = values - values.mean(-1, keepdims=True)
    elif detrend == "linear":
        t = np.arange(count) - (count - 1) / 2.0
        slope = (values * t).sum(-1, keepdims=True) / (t**2).sum()
        values = values - values.mean(-1, keepdims=True) - slope * t
    if window == "hann":
        values = values * (0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(count) / count))
    energy = (np.abs(np.fft.rfft(values, axis=-1) / count) ** 2).reshape(-1, count // 2 + 1).mean(0)
    # Where detrending should have removed everything, only rounding errors are left; their spectrum has no meaning.
    return np.where(energy > ROUNDING * before, energy, 0.0)


def energy_ratio(energy: np.ndarray, constant: bool = True) -> np.ndarray:
    """R_k = log(A_k / sum_j A_j), from k = 0; if `constant` is false, k = 0 is left out of both the ratio and the sum.

    >>> t = np.arange(128) / 128
    >>> energy_ratio(line_energy(1.0 + 3.0 * t))[:3].round(2).tolist()
    [-0.06, -3.36, -4.75]

    The result is always finite: energies below rounding error, and all energies of a zero signal, give `FLOOR`, about
    -72.
    """
    kept = np.asarray(energy, dtype=float)[..., 0 if constant else 1 :]
    total = kept.sum(-1, keepdims=True)
    share = kept / np.where(total > 0, total, 1.0)
    return np.asarray(np.log(np.maximum(share, ROUNDING)))


def mean_frequency(energy: np.ndarray) -> np.ndarray:
    """Mean of k weighted by A_k, for k >= 1, in periods per line; 0 if the signal is constant.

    >>> t = np.arange(64) / 64
    >>> round(float(mean_frequency(line_energy(np.sin(2 * np.pi * 3 * t) + np.sin(2 * np.pi * 5 * t)))), 6)
    4.0
    """
    varying = np.asarray(energy, dtype=float)[..., 1:]
    total = varying.sum(-1)
    k = np.arange(1, varying.shape[-1] + 1)
    return np.asarray((varying * k).sum(-1) / np.where(total > 0, total, 1.0))
