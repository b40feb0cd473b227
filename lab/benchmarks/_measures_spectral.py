"""line-spectrum against a straightforward implementation: one line, one point, one forward pass at a time.

`spectral_lines()` gives one row for `report`: the same numbers by both ways, and the ratio of their times.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from tiltmeter.data.public.digits import plain_digits
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.untouched import untouched
from tiltmeter_lab.measures.line_spectrum import LineSpectrum, line_ends
from tiltmeter_lab.measures.measure import snapshot_of

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best

#: How many times faster it should be.
BAR = 10.0


def one_at_a_time(model: nn.Module, x: np.ndarray, y: np.ndarray, chosen: LineSpectrum) -> np.ndarray:
    """R_k for each kind of path, point by point."""
    found = []
    for path in chosen.paths:
        starts, ends = line_ends(x, y, path, chosen.lines, chosen.length, chosen.seed)
        energies = []
        for start, end in zip(starts, ends, strict=True):
            answers = []
            for i in range(chosen.points):
                point = torch.as_tensor(start + i / chosen.points * (end - start), dtype=torch.float32)
                with torch.no_grad():
                    answers.append(model(point[None])[0].double().numpy())
            energies.append((np.abs(np.fft.rfft(np.stack(answers), axis=0) / chosen.points) ** 2).mean(1))
        energy = np.mean(energies, 0)
        found.append(np.log(energy / energy.sum()))
    return np.stack(found)


def spectral_lines(lines: int = 64) -> dict[str, float]:
    """Seconds of both, their ratio, and whether the threshold is met; both give the same spectrum."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    _, held_out = plain_digits()
    model, chosen = mlp(64, (128, 128), 10), LineSpectrum(lines=lines)
    with untouched(model):
        snapshot = snapshot_of(model, held_out)
        x = snapshot.model.x.double().numpy()
        fast = chosen(snapshot)["energy_ratio"].values
        slow = one_at_a_time(model, x, held_out.y, chosen)
        # Shares of energy, since the smallest are rounding of single precision.
        assert np.allclose(np.exp(fast), np.exp(slow), atol=1e-5)
        seconds = best(lambda: chosen(snapshot)), best(lambda: one_at_a_time(model, x, held_out.y, chosen), 2)
    ratio = seconds[1] / seconds[0]
    return {"seconds": seconds[0], "straightforward": seconds[1], "ratio": ratio, "bar": BAR, "met": ratio >= BAR}


def compare() -> dict[str, dict[str, float]]:
    """Rows of this part of the benchmark of measures."""
    return {"straightforward over line-spectrum, 2 x 64 lines of 64 points": spectral_lines()}


if __name__ == "__main__":
    for label, row in compare().items():
        print(f"{label:<58} {row['ratio']:9.2f}x  (threshold {row['bar']:g}: {'met' if row['met'] else 'MISSED'})")
