"""Calibrate the bands of rehearsals: `python -m tiltmeter_lab.calibrate_spread FOLDER [--write]`.

27 real tasks by the rule of `judge_forecasts`, with other numbers than those that judge. Each is trained twelve times
with different batch orders; five of the trainings make a band, and one of the others is compared with it. The factor
that the library ships is the one with which nine of ten lie inside, over all tasks and both curves. It is near 1: the
simulated band is for normal runs, and real ones have longer tails. Rows are kept in the folder, so that the work can be
interrupted.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tiltmeter as tm
from tiltmeter.forecast.bands import FACTORS, spread_limits
from tiltmeter_lab.calibrate_twins import LEVEL
from tiltmeter_lab.judge_forecasts import STREAM, draw_task, kept_rows, watch
from tiltmeter_lab.judged_forecasts import CURVES

#: Numbers of the tasks; those that judge are below 5200.
NUMBERS = range(5200, 5227)
#: Trainings of a task, how many of them make a band, and how often they are drawn.
TRAININGS, COPIES, DRAWS = 12, 5, 40


def distances(number: int) -> dict[str, Any]:
    """How far trainings lie from the middle of the band of five others, in half widths of the simulated band."""
    task = draw_task(number)
    train, held_out = task.points()
    inputs = int(np.asarray(train.x).shape[1])
    runs = [
        tm.train(task.model(inputs), train, held_out, task.recipe(200 + k), watch=watch()) for k in range(TRAININGS)
    ]
    rng = np.random.default_rng([STREAM, number, 2])
    row: dict[str, Any] = {"number": number, "kind": task.kind}
    for curve in CURVES:
        values = np.stack([run[curve].transpose("time", "group").values for run in runs])
        pairs = list(combinations(range(values.shape[2]), 2))
        gaps = np.stack([values[..., a] - values[..., b] for a, b in pairs], axis=2)
        least = 1.0 / np.array([held_out.sizes[group] for group in runs[0][curve]["group"].values.tolist()])
        floor = 0.0 if curve == "loss" else np.array([least[a] ** 2 + least[b] ** 2 for a, b in pairs])
        row[curve] = []
        for _ in range(DRAWS):
            order = rng.permutation(TRAININGS)
            copies, other = gaps[order[:COPIES]], gaps[order[COPIES]]
            half = spread_limits(copies, gaps.shape[1], values.shape[2], LEVEL, floor)
            off = np.abs(other - copies.mean(0))
            row[curve].append(float(np.max(off[off > 0] / half[off > 0], initial=0.0)))
    return row


def main(given: Sequence[str]) -> None:
    folder = Path(next((word for word in given if not word.startswith("--")), "spread"))
    torch.set_num_threads(1)
    ratios: list[float] = []
    for row in kept_rows(folder, NUMBERS, distances):
        ratios += [ratio for curve in CURVES for ratio in row[curve]]
        inside = {curve: float(np.mean(np.array(row[curve]) <= 1.0)) for curve in CURVES}
        print(row["number"], row["kind"], {curve: round(share, 2) for curve, share in inside.items()}, flush=True)
    factor = round(float(np.quantile(ratios, 1.0 - LEVEL)), 2)
    print(f"inside without a factor: {np.mean(np.array(ratios) <= 1.0):.3f}; factor {factor}")
    if "--write" in given:
        table = json.loads(FACTORS.read_text(encoding="utf-8"))
        origin = f"{len(NUMBERS)} tasks of stream {STREAM}, numbers {NUMBERS[0]} to {NUMBERS[-1]}, drawn beforehand, "
        table["spread"] = {"factor": factor, "origin": origin + "by python -m tiltmeter_lab.calibrate_spread"}
        FACTORS.write_text(f"{json.dumps(table, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
