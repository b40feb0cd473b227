"""Starting: importing tiltmeter and the lightest commands against importing NumPy, each in a fresh interpreter.

Processor time of the child processes, the least of several runs, so that a busy machine changes little. The thresholds
are for what a user installs (`make demo`): where Dask is installed, xarray imports it with its first array, which takes
longer than all the rest of `show`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _measure import report


def processor_time(*argv: str, repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *argv], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def main() -> None:
    if find_spec("dask"):
        print("Dask is installed here, and xarray imports it: measure `show` where only the run's packages are.")
    numpy = processor_time("-c", "import numpy")
    base = processor_time("-c", "import xarray, scipy.special")
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "run")
        make = (
            "import sys, numpy as np, xarray as xr, tiltmeter as tm;"
            "c = {'time': [1., 2., 3.], 'group': ['a', 'b']};"
            "l = xr.DataArray([[1., 1.], [.5, .6], [.2, .5]], dims=('time', 'group'), coords=c);"
            "curves = {'loss': l, 'loss_se': 0 * l + .01};"
            "tm.save(tm.Trajectory(curves, 'step', tm.record.Origin('training')), sys.argv[1])"
        )
        subprocess.run([sys.executable, "-c", make, place], check=True)
        commands = {
            "--help": (("-m", "tiltmeter", "--help"), 3.0),
            "reproduce --list": (("-m", "tiltmeter", "reproduce", "--list"), 3.0),
            "show of a training run": (("-m", "tiltmeter", "show", place), 8.0),
        }
        rows = {}
        for name, (argv, bar) in commands.items():
            ratio = processor_time(*argv) / numpy
            rows[f"tiltmeter {name} over import numpy"] = {"ratio": ratio, "bar": bar, "met": ratio <= bar}
    ours = processor_time("-c", "import tiltmeter") / base
    rows["import tiltmeter over import xarray, scipy.special"] = {"ratio": ours, "bar": 1.3, "met": ours <= 1.3}
    names = "import tiltmeter as tm; tm.predict, tm.Trajectory, tm.SGD, tm.teacher_mixture"
    rows["with its daily names looked up"] = {"ratio": processor_time("-c", names) / base}
    report("import", rows)


if __name__ == "__main__":
    main()
