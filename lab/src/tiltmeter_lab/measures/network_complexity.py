"""network-complexity: how complex the function of a network is on a plane through its inputs (Teney et al., 2024)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import xarray as xr
from scipy.fft import dctn

from tiltmeter.data.principal_components import components_of
from tiltmeter.measures.snapshot import Snapshot


def lempel_ziv(symbols: Iterable[Hashable]) -> int:
    """The number of phrases in one pass: each is the shortest new one; an unfinished last phrase is not counted.

    >>> lempel_ziv("1001111011000010"), lempel_ziv("10" * 8), lempel_ziv("0" * 1024)
    (8, 7, 44)

    A constant sequence of n symbols has about the square root of 2 n phrases, a random one about n / log n. Compare
    only sequences of the same length.
    """
    # A phrase is an earlier phrase and one more symbol, so the number of the earlier one and the symbol identify it.
    numbers: dict[tuple[int, Hashable], int] = {}
    phrase = 0
    for symbol in symbols:
        longer = numbers.get((phrase, symbol))
        if longer is None:
            numbers[phrase, symbol] = len(numbers) + 1
            phrase = 0
        else:
            phrase = longer
    return len(numbers)


#: The plane: leading two principal components, through three points, or the two inputs themselves.
Plane: TypeAlias = Literal["components", "points", "inputs"]


@dataclass(frozen=True)
class NetworkComplexity:
    """Mean frequency and Lempel-Ziv size of a network's outputs on a square grid of `points` by `points`.

    >>> from tiltmeter.data.public.digits import digits
    >>> from tiltmeter_lab.measures.measure import measure
    >>> from tiltmeter.modules.networks import mlp
    >>> found = measure(NetworkComplexity(points=32), mlp(64, (32,), 10), digits()[1])
    >>> bool(0 < found["grid_frequency"] < 0.2)
    True

    `grid_frequency` is the mean distance from the origin of a cosine transform, weighted by amplitude and relative to
    the largest distance (0: flat, about 0.5: noise), averaged over outputs. `lempel_ziv` is the size of the outputs as
    symbols, row by row. The symbol is the decision for several outputs, otherwise one of `levels` equal steps between
    minimum and maximum. Both null values are those of the plane fitted to the outputs: what a linear model shows
    because of the edges of the grid alone.

    `plane` is that of the two leading principal components of the held-out points, from -`extent` to `extent` standard
    deviations about the mean; or the one through three of the points, drawn with `seed`; or, for a network of two
    inputs, the square from -`extent` to `extent`.

    What it does not mean: you can compare numbers only on the same grid, plane and levels. The size depends on the
    order of the scan, and the function may be complex outside this plane. A low number is a property of the function,
    *not* of training: random ReLU networks have it at any scale of their weights.

    Args:
        plane: "components" of the held-out points, through three "points", or the "inputs" of a network of two.
        extent: Half the side of the square, in standard deviations or input units.
        points: Points along one side of the grid.
        levels: Steps of one output that become symbols.
        seed: Seed of the three points.
    """

    plane: Plane = "components"
    extent: float = 2.0
    points: int = 64
    levels: int = 2
    seed: int = 0

    title: ClassVar[str] = "frequency and Lempel-Ziv size of a network's function on a plane through its inputs"
    takes: ClassVar[str] = "any network with two or more inputs that are numbers, not tokens"
    exact: ClassVar[str] = "a ReLU network without bias has the same value at any scale of its weights"
    absent: ClassVar[str] = "random networks with sine, tanh or Gaussian activations and large weights are complex"

    def __post_init__(self) -> None:
        if self.plane not in ("components", "points", "inputs"):
            raise ValueError(f"`plane` should be components, points or inputs. Found plane = {self.plane!r}.")
        if self.points < 2 or self.levels < 2 or not self.extent > 0:
            raise ValueError(
                "`points` and `levels` should be at least 2 and `extent` positive. Found points = "
                f"{self.points}, levels = {self.levels}, extent = {self.extent}."
            )

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen = snapshot.model
        if not seen.x.is_floating_point():
            raise ValueError("A plane needs inputs that are numbers. Found integer inputs (tokens).")
        inputs = self._grid(seen.x.flatten(1).double().cpu().numpy(), snapshot)
        answers = seen.scores(inputs.reshape(-1, *seen.x.shape[1:])).double().cpu().numpy()
        found = {}
        for suffix, values, said in (("", answers, ""), ("_null", self._fitted(answers), ", of the fitted plane")):
            found[f"grid_frequency{suffix}"] = snapshot.reading(
                f"grid_frequency{suffix}",
                np.asarray(np.mean([grid_frequency(v.reshape(self.points, -1)) for v in values.T])),
                {},
                long_name=f"mean frequency on a plane through the inputs{said}",
                better="neither",
            )
            found[f"lempel_ziv{suffix}"] = snapshot.reading(
                f"lempel_ziv{suffix}",
                np.asarray(float(lempel_ziv(symbols(values, self.levels).tolist()))),
                {},
                long_name=f"Lempel-Ziv size on a plane through the inputs{said}",
                better="neither",
            )
        return found

    def passes(self, snapshot: Snapshot) -> float:
        """The number of grid points divided by the number of held-out points."""
        return self.points**2 / len(snapshot.data)

    def _grid(self, x: np.ndarray, snapshot: Snapshot) -> np.ndarray:
        """The inputs of the grid, row by row."""
        side = np.linspace(-self.extent, self.extent, self.points)
        if self.plane == "inputs":
            if x.shape[1] != 2:
                raise ValueError(f'With plane = "inputs" a network should have two inputs. Found {x.shape[1]}.')
            return np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
        if self.plane == "components":
            found = components_of(snapshot.data)
            if len(found) < 2:
                raise ValueError('Inputs should vary in two directions, or plane be "inputs". Found one direction.')
            origin = found.mean
            axes = found.directions[:2] * np.sqrt(found.variances[:2, None])
        else:
            if len(x) < 3:
                raise ValueError(f"A plane should go through three points. Found {len(x)}.")
            origin, first, second = x[np.random.default_rng(self.seed).choice(len(x), 3, replace=False)]
            axes = np.stack([first - origin, second - origin])
        a, b = np.meshgrid(side, side, indexing="ij")
        return np.asarray(origin + a.reshape(-1, 1) * axes[0] + b.reshape(-1, 1) * axes[1])

    def _fitted(self, answers: np.ndarray) -> np.ndarray:
        """The least-squares plane through the outputs on the grid."""
        side = np.linspace(-1.0, 1.0, self.points)
        a, b = (each.ravel() for each in np.meshgrid(side, side, indexing="ij"))
        # On a symmetric grid the three regressors are orthogonal.
        return np.asarray(
            answers.mean(0)
            + a[:, None] * (a @ answers)[None, :] / (a @ a)
            + b[:, None] * (b @ answers)[None, :] / (b @ b)
        )


def grid_frequency(values: np.ndarray) -> float:
    """Mean distance from the origin of the cosine transform, weighted by amplitude, over the largest; 0 if constant.

    >>> side = np.pi * (np.arange(64) + 0.5) / 64
    >>> round(grid_frequency(np.cos(6 * side)[:, None] * np.cos(8 * side)) * 63 * 2**0.5, 6)  # 6 and 8: at distance 10
    10.0

    A plane has about 0.03 on a grid of 64 by 64, because of its edges.
    """
    values = np.asarray(values, dtype=float)
    varying = values - values.mean()
    # The spectrum of a function that is constant up to rounding has no meaning.
    if np.abs(varying).max() <= 1e-12 * max(np.abs(values).max(), np.finfo(float).tiny):
        return 0.0
    amplitude = np.abs(dctn(varying / np.abs(varying).max(), norm="ortho"))
    amplitude[0, 0] = 0.0
    distance = np.hypot(*np.meshgrid(*(np.arange(n) for n in values.shape), indexing="ij"))
    return float((amplitude * distance).sum() / amplitude.sum() / distance.max())


def symbols(answers: np.ndarray, levels: int) -> np.ndarray:
    """Outputs (points, outputs) as whole numbers: the index of the largest output, or the step between minimum and
    maximum.

    >>> symbols(np.array([[0.0], [0.2], [0.7], [1.0]]), 2).tolist()
    [0, 0, 1, 1]
    """
    if answers.shape[1] > 1:
        return np.asarray(answers.argmax(1))
    low, high = answers.min(), answers.max()
    if not high > low:
        return np.zeros(len(answers), dtype=int)
    steps = ((answers[:, 0] - low) / (high - low) * levels).astype(int)
    return np.asarray(np.minimum(steps, levels - 1))
