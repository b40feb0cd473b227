"""Copies of live trainings, file by file while they are recorded, in both orders: what is in them, and do they go on?

python benchmarks/live_copies.py 100
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import nn

import tiltmeter as tm

STEPS = 600
WATCH = tm.Watch(when=tm.record.every(2))
RECIPE = tm.Recipe(lr=0.05, momentum=0.9, steps=STEPS, batch=8, loss=tm.Logistic())


def data() -> tuple[tm.GroupedData, ...]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4)).astype("float32")
    return tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(3000) % 4 == 0, "b", "a")).split(0.5)


def train(path: Path, resume: bool = False) -> tm.Trajectory:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return tm.train(model, *data(), RECIPE, watch=WATCH, to=path, checkpoint=tm.record.every(10), resume=resume)


def copied(source: Path, target: Path, backwards: bool) -> None:
    """As a slow copy does it: one file after another, while the run goes on."""
    for file in sorted((one for one in source.rglob("*") if one.is_file()), reverse=backwards):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(file, place)
        except FileNotFoundError:
            continue  # a file that was being written aside
        time.sleep(0.002)


def judged(copy: Path, whole: tm.Trajectory) -> str:
    """How a copy loads and goes on."""
    if not (copy / "run.json").exists():
        return "no run yet"
    found = tm.load(copy)
    count = found["loss"].sizes["time"] if "loss" in found else 0
    for name, curve in found.items():
        if not curve.identical(whole[name].isel(time=slice(0, curve.sizes["time"]))):
            return f"WRONG: {name} after {count}"
    try:
        again = train(copy, resume=True)
    except (ValueError, OSError) as error:
        choice = "accept_missing" in str(error)
        return "asks: the checkpoint is ahead" if choice else f"REFUSED: {error}"
    return "goes on, identical" if again == whole and tm.load(copy) == whole else "WRONG: another result"


def main(count: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        whole = train(root / "whole")
        copies: list[Path] = []
        number = 0
        while len(copies) < count:
            number += 1
            source = root / f"live{number}"
            thread = threading.Thread(target=train, args=(source,))
            thread.start()
            while thread.is_alive() and len(copies) < count:
                if (source / "run.json").exists():
                    target = root / f"copy{len(copies)}"
                    copied(source, target, backwards=len(copies) % 2 == 1)
                    copies.append(target)
                time.sleep(0.01)
            thread.join()
            shutil.rmtree(source)
        ends = {
            order: Counter(judged(one, whole) for one in copies[start::2])
            for start, order in enumerate(("alphabetical", "reverse"))
        }
    for order, found in ends.items():
        print(order, dict(found))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
