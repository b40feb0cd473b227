"""frequency-reliance: accuracy of each group on images of which only some frequencies, or only patches, are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot, group_share
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.measures.measure import few_digits

#: What is left of an image, in the order of the dimension `filter`.
FILTERS = ("whole", "low", "band", "high", "shuffled patches")


@dataclass(frozen=True)
class FrequencyReliance:
    """`filtered_accuracy` (filter, group): the share decided right from low, middle or high frequencies alone, and from
    patches in random order.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> measure, model, data = FrequencyReliance.example(0)
    >>> lab.measure(measure, model, data)["filtered_accuracy"].sizes
    Frozen({'filter': 5, 'group': 2})

    Frequencies are radii in the plane of Fourier coefficients, in parts of the highest one along an axis: "low" is up
    to the first of `cuts`, "band" up to the second, "high" the rest. Every filter keeps the mean of each channel, so
    low + band + high - 2 means is the image. In "shuffled patches" squares of `patch` pixels are permuted, the same way
    in all images: texture stays, shape goes (Geirhos et al., 2019).

    The null value is the share of the group's most frequent label, which needs no image.

    What it does not mean: filtered images are unlike those trained on. A low accuracy on one band does not say that
    its frequencies are unused, only that they are not enough.

    Args:
        cuts: Ends of the low and of the middle frequencies, in parts of the highest one.
        patch: Side of the squares that are shuffled, in pixels.
        seed: Seed of the order of the patches.
    """

    cuts: tuple[float, float] = (0.25, 0.5)
    patch: int = 4
    seed: int = 0

    title: ClassVar[str] = "Accuracy of each group on low-, band- and high-passed images and on shuffled patches"
    takes: ClassVar[str] = "images (channels, height, width) of real numbers, and labels"
    exact: ClassVar[str] = "always, for the held-out images (filters by the discrete Fourier transform)"
    absent: ClassVar[str] = "decisions that depend on the mean of each channel alone: all filters are equal"
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.cuts[0] < self.cuts[1]:
            raise ValueError(f"`cuts` should be two rising positive numbers. Found cuts = {self.cuts}.")
        if self.patch < 1:
            raise ValueError(f"`patch` should be at least 1. Found patch = {self.patch}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen, data = snapshot.model, snapshot.data
        if not isinstance(seen.x, Tensor) or seen.x.ndim != 4 or not seen.x.is_floating_point():
            raise ValueError("FrequencyReliance needs images (channels, height, width) of real numbers.")
        labels = np.asarray(data.y)
        right = [group_share(seen.decide(seen.scores(x)) == labels, data) for x in self.filtered(seen.x)]
        values, errors = (np.stack(part) for part in zip(*right, strict=True))
        kinds, known = np.unique(labels, return_inverse=True)
        cells = np.zeros((len(data.groups), len(kinds)))
        np.add.at(cells, (data.codes, known), 1.0 if data.weights is None else data.weights)
        with np.errstate(all="ignore"):
            constant = cells.max(1) / cells.sum(1)
        coords = {"filter": np.array(FILTERS, dtype=object), "group": data.group_labels}
        name, meaning = "filtered_accuracy", "share decided right from what a filter leaves"
        null = np.broadcast_to(constant, values.shape).copy()
        return {
            name: snapshot.reading(name, values, coords, long_name=meaning, better="higher"),
            f"{name}_se": snapshot.reading(f"{name}_se", errors, coords, long_name="its standard error"),
            f"{name}_null": snapshot.reading(f"{name}_null", null, coords, long_name="share of the commonest label"),
        }

    def filtered(self, x: Tensor) -> list[Tensor]:
        """The images through every filter, in the order of `FILTERS`."""
        height, width = x.shape[2:]
        rows, columns = torch.fft.fftfreq(height).abs() * 2, torch.fft.rfftfreq(width).abs() * 2
        radius = torch.sqrt(rows[:, None] ** 2 + columns[None, :] ** 2)
        spectrum, mean = torch.fft.rfft2(x), x.mean((2, 3), keepdim=True)
        low, high = self.cuts
        bands = (radius <= low, (radius > low) & (radius <= high), radius > high)
        passed = [torch.fft.irfft2(spectrum * band, s=(height, width)) for band in bands]
        return [x, passed[0], passed[1] + mean, passed[2] + mean, self._shuffled(x)]

    def _shuffled(self, x: Tensor) -> Tensor:
        """Whole patches permuted; rows and columns that fill no patch stay where they are."""
        rows, columns = (size // self.patch for size in x.shape[2:])
        order = torch.as_tensor(np.random.default_rng(self.seed).permutation(rows * columns))
        inside = x[:, :, : rows * self.patch, : columns * self.patch]
        cut = (len(x), x.shape[1], rows, self.patch, columns, self.patch)
        parts = inside.reshape(cut).permute(0, 2, 4, 1, 3, 5).flatten(1, 2)[:, order]
        mixed = parts.reshape(len(x), rows, columns, *parts.shape[2:]).permute(0, 3, 1, 4, 2, 5)
        found = x.clone()
        found[:, :, : rows * self.patch, : columns * self.patch] = mixed.reshape(inside.shape)
        return found

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One for each filter."""
        return float(len(FILTERS))

    @classmethod
    def example(cls, seed: int = 0) -> tuple[Self, nn.Module, GroupedData]:
        """Digits as images."""
        few = few_digits(seed)
        data = GroupedData(few.x.reshape(-1, 1, 8, 8), few.y, [few.groups[code] for code in few.codes])
        return cls(patch=2), nn.Sequential(nn.Flatten(), *mlp(64, (16,), 10)), data
