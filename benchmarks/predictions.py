"""1,000,000 people, predicted at 20 evaluations: time and memory from the table to the report page.

Each shape of the table is read in a process of its own, since memory that was used once is not given back. `long` has
one row for each prediction (20,000,000), `wide` one column for each evaluation. The bounds are 60 s and 4 GiB.
`python benchmarks/predictions.py [POINTS]`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report

POINTS, EVALUATIONS = 1_000_000, 20
#: What it may take.
SECONDS, GIB = 60, 4


def write(shape: str, points: int, path: Path) -> None:
    """A Parquet file of predictions that become better, for one group sooner than for the other."""
    import pandas as pd

    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, points).astype(np.int8)
    women = rng.random(points) < 0.4
    sex, race = np.where(women, "women", "men"), rng.choice(["x", "y", "z"], points)
    columns = {"approved": label, "sex": sex, "race": race}
    scores = {}
    for number in range(1, EVALUATIONS + 1):
        skill = np.where(women, 0.6, 1.0) * number / EVALUATIONS
        chance = 1 / (1 + np.exp(-(2 * label - 1) * skill - rng.normal(size=points)))
        scores[100 * number] = chance.astype(np.float32)
    if shape == "wide":
        columns |= {f"p{step}": chance for step, chance in scores.items()}
    else:
        columns = {name: np.tile(values, EVALUATIONS) for name, values in columns.items()}
        columns["step"] = np.repeat(np.fromiter(scores, dtype=np.int32), points)
        columns["score"] = np.concatenate(list(scores.values()))
    pd.DataFrame(columns).to_parquet(path)


def judge(shape: str, path: str) -> None:
    """Read the table and write the page; prints seconds and the largest memory of this process."""
    start = time.perf_counter()
    import tiltmeter as tm

    steps = [100 * number for number in range(1, EVALUATIONS + 1)]
    score = {step: f"p{step}" for step in steps} if shape == "wide" else "score"
    run = tm.predictions.run(path, label="approved", group="sex", score=score)
    read = time.perf_counter()
    tm.report([run], f"{path}.html")
    end = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(read - start, end - read, memory, time.process_time())


def main() -> None:
    rows = {}
    for shape in ("wide", "long"):
        with tempfile.TemporaryDirectory() as folder:
            table = str(Path(folder, "predictions.parquet"))
            subprocess.run([sys.executable, __file__, "write", shape, table], check=True)
            done = subprocess.run([sys.executable, __file__, "judge", shape, table], check=True, capture_output=True)
        read, written, memory, busy = map(float, done.stdout.split())
        name = f"{POINTS:,} x {EVALUATIONS}, {shape} table"
        # The seconds of the processor say what an idle machine would take, where others use this one, too.
        seconds = {"read": read, "report": written, "processor": busy, "ratio": (read + written) / SECONDS}
        rows[f"{name}: seconds of {SECONDS}"] = {**seconds, "bar": 1.0, "met": read + written <= SECONDS}
        rows[f"{name}: GiB of {GIB}"] = {"memory": memory, "ratio": memory / GIB, "bar": 1.0, "met": memory <= GIB}
    report("predictions", rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(sys.argv[2], POINTS, Path(sys.argv[3]))
    elif sys.argv[1:2] == ["judge"]:
        judge(*sys.argv[2:])
    else:
        main()
