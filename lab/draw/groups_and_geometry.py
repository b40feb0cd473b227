"""Draws the pictures of the pages on groups and on geometry: python docs/draw/groups_and_geometry.py"""

from functools import partial
from pathlib import Path

import altair as alt
import numpy as np
import torch
from PIL import Image

import tiltmeter as tm
from tiltmeter.data.public.digits import digits
from tiltmeter.modules.networks import mlp
from tiltmeter_lab.catalogue import make_now
from tiltmeter_lab.measures.sharpness import Sharpness
from tiltmeter_lab.named import edge_of_stability, minority_drop

STATIC = Path(__file__).parents[1] / "_static"


def sharpness() -> tm.Trajectory:
    """Four networks that learn the digits."""
    train, held_out = digits()
    few = held_out.take(np.r_[0:150, 900:1050])
    runs = []
    for seed in range(4):
        torch.manual_seed(seed)
        sharp = Sharpness(count=1, iterations=10, probes=2)
        sgd = partial(torch.optim.SGD, lr=0.3)
        when = tm.record.log_spaced(8)
        runs.append(
            tm.train(
                mlp(64, (16,), 10),
                train,
                few,
                tm.Recipe(sgd, steps=400),
                watch=tm.Watch(when=when, measures=(sharp,)),
                seed=seed,
            )
        )
    return tm.stack(runs)


def draw(chart: alt.TopLevelMixin, path: Path) -> None:
    """As PNG with few colours: a fifth of the size."""
    tm.plot.save(chart, path)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


def main() -> None:
    torch.set_num_threads(1)
    runs = minority_drop.run(minority_drop.QUICK, make_now)
    chart = next(iter(minority_drop.pictures(runs).values()))
    draw(chart, STATIC / "minority-drop.png")
    draw(tm.plot.curves(sharpness(), curve="group_hessian_top"), STATIC / "sharpness.png")
    runs = edge_of_stability.run(edge_of_stability.QUICK, make_now)
    draw(next(iter(edge_of_stability.pictures(runs).values())), STATIC / "edge-of-stability.png")


if __name__ == "__main__":
    main()
