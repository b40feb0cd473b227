"""Discovering: processor time of the search against half a second, its memory, and judging for several networks.

12,000 held-out points, of which 6,000 search and 6,000 judge; 13 columns, 26 evaluations. Losses are random, so nothing
depends on a download. Judging reads kept losses only, so it is the same whatever the size of the network; it is given
as seconds for each rule.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter.discover.curves import halves, learning_curves
from tiltmeter.discover.pursuit import Search, standardised
from tiltmeter.discover.rules import candidates, columns_of

sys.path.insert(0, str(Path(__file__).parent))
from _measure import best, report

POINTS, EVALUATIONS = 12_000, 26
#: Processor seconds that the search may take, and copies of the condition matrix (four bytes each) that it may hold.
SECONDS, COPIES = 0.5, 3.0


def made_table(rng: np.random.Generator) -> dict[str, np.ndarray]:
    numbers = {f"number {place}": rng.normal(size=POINTS) for place in range(6)}
    words = {f"word {place}": rng.choice(list("abcdefgh"), POINTS) for place in range(7)}
    return {**numbers, **words}


def made_run(rng: np.random.Generator) -> tm.Trajectory:
    times = np.unique(np.geomspace(1, 1500, EVALUATIONS + 2).round().astype(int))[:EVALUATIONS]
    coords = {
        "time": times,
        "group": ("point", np.zeros(POINTS, dtype=int)),
        "positive": ("point", rng.random(POINTS) < 0.3),
    }
    level = rng.exponential(size=POINTS)
    losses = 0.3 * level + 0.1 * rng.exponential(size=(EVALUATIONS, POINTS))
    array = xr.DataArray(losses.astype(np.float32), dims=("time", "point"), coords=coords)
    mean = array.mean("point").expand_dims(group=[0], axis=1)
    origin = tm.record.Origin("training", settings={"loss": "logistic loss"})
    return tm.Trajectory({"loss": mean}, "step", origin, points={"loss": array})


def main() -> None:
    rng = np.random.default_rng(0)
    table, run = made_table(rng), made_run(rng)
    curves = learning_curves(run)
    searched = np.flatnonzero(~halves(curves, 0.5, 0))
    columns = {name: values[searched] for name, values in columns_of(table).items()}

    def search() -> None:
        both = Search(candidates(columns).holds, 3, 0.02)
        for target in (curves.end(searched), curves.later(searched)):
            both.pursue(standardised(target), 6, 0.0)

    seconds = best(search, clock=time.process_time)
    offered = candidates(columns)
    both = Search(offered.holds, 3, 0.02)
    targets = [standardised(target) for target in (curves.end(searched), curves.later(searched))]
    tracemalloc.start()
    for target in targets:
        both.pursue(target, 6, 0.0)
    copies = tracemalloc.get_traced_memory()[1] / (4 * offered.holds.size)
    tracemalloc.stop()
    start = time.process_time()
    discovery = tm.discover(run, table, floor=1.0)
    judging = (time.process_time() - start - seconds) / max(len(discovery.groups), 1)
    print(f"search {seconds:.2f} s, judging {judging:.2f} s for each of {len(discovery.groups)} rules")
    report(
        "discover",
        {
            "search of 6,000 points, 13 columns over half a second": {
                "seconds": seconds,
                "ratio": seconds / SECONDS,
                "bar": 1.0,
                "met": seconds <= SECONDS,
            },
            "memory of the search over one condition matrix": {
                "ratio": copies,
                "bar": COPIES,
                "met": copies <= COPIES,
            },
            "judging a rule over half a second": {"seconds": judging, "ratio": judging / SECONDS},
        },
    )


if __name__ == "__main__":
    main()
