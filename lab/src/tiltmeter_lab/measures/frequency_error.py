"""frequency-error: how well each frequency of a function of one number is learned (Rahaman et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.data.sines import Sines, sines

#: Amplitudes of the data below this share of the largest are rounding or leakage, not frequencies to be learned.
PRESENT = 1e-3
#: Amplitudes of a target below this share of the largest are rounding errors: an error cannot be divided by them.
ROUNDING = 1e-12


@dataclass(frozen=True)
class FrequencyError:
    """Error of the model's Fourier transform at the frequencies of its target, on a regular grid.

    >>> import torch
    >>> from tiltmeter_lab.data.sines import sines
    >>> from tiltmeter_lab.measures.measure import measure
    >>> found = measure(FrequencyError(Sines((1, 3))), torch.nn.Linear(1, 1), sines(Sines((1, 3))))
    >>> found["frequency_error"].dims, found["frequency_error_null"].values.tolist()
    (('frequency',), [1.0, 1.0])

    `frequency_error` at k is the magnitude of F_model(k) - F_target(k) divided by that of F_target(k), with F complex.
    0 means learned; 1 is the error of a model that outputs zero (`frequency_error_null`). `amplitude_ratio` is the
    magnitude of F_model divided by that of F_target. It is 1 if learned, but it ignores the phase: a wave in the wrong
    place counts as learned.

    With `target=None` the held-out points are the grid. They should be equally spaced over one period without its end
    point; the frequencies are then those present in their labels.

    What it does not mean: the time alone does *not* say how fast a frequency is learned, because it depends on the
    scale of the inputs, the optimiser and the activation. A low error also says nothing about points off the grid. With
    label noise, high frequencies may be learned and lost again, so the order holds only for the first time that they
    are learned.

    Args:
        target: Function to be learned; None: the held-out points are the grid.
        points: Points of the grid on its interval.
    """

    target: Sines | None = None
    points: int = 256

    title: ClassVar[str] = "error at each frequency of a function of one number"
    takes: ClassVar[str] = "a model of one number with one output, and a sum of sines as target or labels on a grid"
    exact: ClassVar[str] = "for whole periods on the grid, below half its number of points"
    absent: ClassVar[str] = (
        "sine or Gaussian activations with large weights learn high frequencies as early as low ones"
    )

    def __post_init__(self) -> None:
        if self.target is not None and 2 * max(self.target.frequencies) >= self.points:
            raise ValueError(
                f"`points` should exceed twice the highest frequency, {max(self.target.frequencies)}. Found points = "
                f"{self.points}."
            )
        if self.target is not None:
            sizes = np.abs(np.fft.rfft(self.target(self.target.grid(self.points))))
            missing = [k for k in self.target.frequencies if not sizes[k] > ROUNDING * sizes.max()]
            if missing:
                raise ValueError(
                    f"`target` should contain every frequency that it names. Found nothing at frequency {missing[0]}."
                )

    @classmethod
    def example(cls, seed: int) -> tuple[FrequencyError, nn.Module, GroupedData]:  # noqa: ARG003
        """The measure with a small network and the waves that it should learn."""
        return cls(Sines((1, 2, 4))), mlp(1, (32,)), sines(Sines((1, 2, 4)), 64)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if int(np.prod(snapshot.data.x.shape[1:])) != 1 or snapshot.task.outputs != 1:
            raise ValueError(
                f"`frequency-error` needs a model of one number with one output. Found inputs of shape "
                f"{tuple(snapshot.data.x.shape[1:])} and {snapshot.task.outputs} outputs: see line-spectrum."
            )
        grid, wanted, frequencies = self._on_grid(snapshot)
        shaped = grid.reshape(-1, *snapshot.data.x.shape[1:])
        answers = snapshot.model.scores(shaped)[:, 0].double().cpu().numpy()
        goal = np.fft.rfft(wanted)[frequencies]
        found = np.fft.rfft(answers)[frequencies]
        coords = {"frequency": frequencies}
        null = "1: a model that outputs zero; the value at initialisation"
        return {
            "frequency_error": snapshot.reading(
                "frequency_error",
                np.abs(found - goal) / np.abs(goal),
                coords,
                long_name="relative error at a frequency, phase included",
                better="lower",
                null=null,
            ),
            "frequency_error_null": snapshot.reading(
                "frequency_error_null",
                np.ones(len(frequencies)),
                coords,
                long_name="relative error of a model that outputs zero",
                better="neither",
            ),
            "amplitude_ratio": snapshot.reading(
                "amplitude_ratio",
                np.abs(found) / np.abs(goal),
                coords,
                long_name="amplitude relative to the target, phase ignored",
                better="neither",
                null=null.replace("1", "0"),
            ),
            "amplitude_ratio_null": snapshot.reading(
                "amplitude_ratio_null",
                np.zeros(len(frequencies)),
                coords,
                long_name="amplitude of a model that outputs zero",
                better="neither",
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:
        """The number of grid points divided by the number of held-out points."""
        return 1.0 if self.target is None else self.points / len(snapshot.data)

    def _on_grid(self, snapshot: Snapshot) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs, the target's values there, and the frequencies to measure."""
        if self.target is not None:
            grid = self.target.grid(self.points)
            return grid, self.target(grid), np.asarray(sorted(set(self.target.frequencies)))
        x = np.asarray(snapshot.data.x, dtype=float).reshape(-1)
        order = np.argsort(x)
        gaps = np.diff(x[order])
        if len(x) < 4 or not np.allclose(gaps, gaps.mean(), rtol=1e-3, atol=0.0):
            raise ValueError(
                "`target` should be given where the held-out points are not an even grid of at least 4. Found "
                f"{len(x)} points with gaps from {gaps.min(initial=np.inf):.3g} to {gaps.max(initial=0.0):.3g}."
            )
        wanted = np.asarray(snapshot.data.y, dtype=float)[order]
        sizes = np.abs(np.fft.rfft(wanted))[1 : (len(x) + 1) // 2]
        if not sizes.max() > PRESENT * np.abs(wanted).max():
            raise ValueError("The labels should vary over the grid. Found labels without any frequency.")
        return x[order], wanted, 1 + np.flatnonzero(sizes > PRESENT * sizes.max())
