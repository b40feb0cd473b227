"""kernel-spectrum: what a network would learn first from its current weights, by the eigenvalues of its tangent
kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent.kernel import tangent_kernel
from tiltmeter_lab.data.sines import Sines, sines


@dataclass(frozen=True)
class KernelSpectrum:
    """Eigenvalues of the tangent kernel divided by the number of points, and how much of the labels lies along each.

    >>> from tiltmeter_lab.measures.measure import measure
    >>> found = measure(KernelSpectrum(frequencies=(1, 5)), *KernelSpectrum.example(0)[1:])["frequency_eigenvalue"]
    >>> bool(found.sel(frequency=1) > found.sel(frequency=5))
    True

    Under gradient flow on half the mean squared error, the remaining error along mode i falls as exp(-eigenvalue_i t)
    while the kernel stays constant: modes with large eigenvalues are learned first. `kernel_eigenvalue` holds the
    leading `modes`; its null value is the mean of all eigenvalues, as if every direction were learned equally fast.
    `kernel_alignment` is the cumulative share of the labels (centred; one-hot for several outputs) in the leading
    modes; its null value is the average for shuffled labels.

    With `frequencies`, the held-out points should be in order and evenly spaced around a circle or along an interval.
    `frequency_eigenvalue` is then the kernel's mean along cos and sin of each frequency; its null value is the mean of
    all eigenvalues. At most `points` points are used, evenly chosen. With several outputs it is the mean kernel over
    them.

    What it does not mean: it does *not* say what a network learns in the end, or how fast it learns once its kernel has
    changed, as it does in training. Eigenvalues depend on the scale of inputs, weights and layers: compare their order,
    or ratios.

    Args:
        modes: Leading eigenvalues that are kept.
        points: Most held-out points that are used, evenly chosen.
        frequencies: Frequencies whose eigenvalues are given, for points in order around a circle; empty: none.
    """

    modes: int = 16
    points: int = 128
    frequencies: tuple[int, ...] = ()

    title: ClassVar[str] = "what a network would learn first, by the eigenvalues of its tangent kernel"
    takes: ClassVar[str] = "any network with trainable parameters; for frequencies, points in order on an even grid"
    exact: ClassVar[str] = "the kernel itself; learning rates of modes for very wide networks and small steps"
    absent: ClassVar[str] = "equal eigenvalues: no order; without bias, odd frequencies from 3 on are not learned"

    def __post_init__(self) -> None:
        if self.modes < 1 or self.points < 2:
            raise ValueError(
                f"`modes` should be at least 1 and `points` 2. Found modes = {self.modes}, points = {self.points}."
            )
        if any(k < 1 or 2 * k >= self.points for k in self.frequencies):
            raise ValueError(
                f"`frequencies` should lie between 1 and half of points = {self.points}. Found {self.frequencies}."
            )

    @classmethod
    def example(cls, seed: int) -> tuple[KernelSpectrum, nn.Module, GroupedData]:  # noqa: ARG003
        """The measure with a small network on a circle."""
        return cls(modes=8, frequencies=(1, 2, 3)), mlp(2, (64,)), sines(Sines((1, 2)), 64, circle=True)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen = snapshot.model
        places = self._places(snapshot)
        x = seen.x[torch.as_tensor(places, device=seen.x.device)]
        kernel = tangent_kernel(seen.module, x, outputs="trace", read=seen.read, chunk=seen.chunk) / len(x)
        values, vectors = np.linalg.eigh(kernel)
        count = min(self.modes, len(values))
        values, vectors = np.maximum(values[::-1], 0.0)[:count], vectors[:, ::-1][:, :count]
        mode = {"mode": np.arange(1, count + 1)}
        mean = float(np.trace(kernel)) / len(kernel)
        found = {
            "kernel_eigenvalue": snapshot.reading(
                "kernel_eigenvalue", values, mode, long_name="eigenvalue of the tangent kernel", better="neither"
            ),
            "kernel_eigenvalue_null": snapshot.reading(
                "kernel_eigenvalue_null",
                np.full(count, mean),
                mode,
                long_name="mean eigenvalue of the tangent kernel",
                better="neither",
            ),
            "kernel_alignment": snapshot.reading(
                "kernel_alignment",
                np.cumsum(label_shares(snapshot, places, vectors)),
                mode,
                long_name="share of the labels in the leading modes of the tangent kernel",
                better="neither",
            ),
            "kernel_alignment_null": snapshot.reading(
                "kernel_alignment_null",
                np.cumsum(shuffled_shares(vectors)),
                mode,
                long_name="share of shuffled labels in the same number of modes",
                better="neither",
            ),
        }
        if self.frequencies:
            wave = {"frequency": np.asarray(self.frequencies)}
            found["frequency_eigenvalue"] = snapshot.reading(
                "frequency_eigenvalue",
                frequency_means(kernel, self.frequencies),
                wave,
                long_name="tangent kernel along a frequency",
                better="neither",
            )
            found["frequency_eigenvalue_null"] = snapshot.reading(
                "frequency_eigenvalue_null",
                np.full(len(self.frequencies), mean),
                wave,
                long_name="mean eigenvalue of the tangent kernel",
                better="neither",
            )
        return found

    def passes(self, snapshot: Snapshot) -> float:
        """A forward pass and one backward pass per output, over the points that are used."""
        return (1.0 + 2.0 * snapshot.task.outputs) * len(self._places(snapshot)) / len(snapshot.data)

    def _places(self, snapshot: Snapshot) -> np.ndarray:
        count = len(snapshot.data)
        if count < 2:
            raise ValueError(f"A spectrum needs at least two points. Found {count}.")
        places = np.arange(0, count, -(-count // self.points))
        if self.frequencies and 2 * max(self.frequencies) >= len(places):
            raise ValueError(f"`frequencies` should lie below half of {len(places)} points. Found {self.frequencies}.")
        if self.frequencies and count % len(places):
            raise ValueError(
                f"For frequencies, `points` should leave an even grid of the {count} held-out points. Found points = "
                f"{self.points}."
            )
        return places


def frequency_means(kernel: np.ndarray, frequencies: tuple[int, ...]) -> np.ndarray:
    """Mean of v . K v over the unit vectors cos and sin of each frequency, for points in order on an even grid.

    >>> frequency_means(np.eye(8), (1, 2)).round(6).tolist()
    [1.0, 1.0]
    """
    angle = 2.0 * np.pi * np.arange(len(kernel)) / len(kernel)
    waves = np.stack([wave(k * angle) for k in frequencies for wave in (np.cos, np.sin)])
    waves /= np.linalg.norm(waves, axis=1, keepdims=True)
    return np.asarray(np.einsum("ki,ij,kj->k", waves, kernel, waves).reshape(-1, 2).mean(1))


def label_shares(snapshot: Snapshot, places: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Share of the energy of the centred labels along each mode; zero if the labels are constant."""
    y = snapshot.data.y[places]
    outputs = snapshot.task.outputs
    labels = np.asarray(y, dtype=float)[:, None] if outputs == 1 else np.eye(outputs)[y.astype(int)]
    labels = labels - labels.mean(0)
    total = float((labels**2).sum())
    return np.asarray(((vectors.T @ labels) ** 2).sum(1) / (total or 1.0))


def shuffled_shares(vectors: np.ndarray) -> np.ndarray:
    """The average of `label_shares` over all permutations of the labels.

    >>> shuffled_shares(np.eye(4)[:, :2]).tolist()
    [0.25, 0.25]

    Centred labels have no component along the constant vector, and a leading mode is often nearly constant: hence (1 -
    its overlap) / (n - 1).
    """
    points = len(vectors)
    return np.asarray((1.0 - vectors.sum(0) ** 2 / points) / (points - 1))
