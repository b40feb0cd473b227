"""Recording: the one data type, and the run directories that keep it.

Everything in tiltmeter returns or takes a `Trajectory`: curves over training with labelled dimensions. A `Recorder`
makes one, evaluation by evaluation, in memory or in a directory that survives `kill -9` at any instant:

>>> from tempfile import TemporaryDirectory
>>> import numpy as np, xarray as xr
>>> runs = TemporaryDirectory()
>>> place = f"{runs.name}/mine"
>>> evaluate_at = log_spaced(per_decade=4)
>>> with Recorder(place, clock="step", origin=Origin("example", seeds=(0,))) as recorder:
...     for step in range(101):
...         if evaluate_at(step):
...             loss = xr.DataArray(np.exp([-0.1 * step, -0.02 * step]), dims="group", coords={"group": ["+", "-"]})
...             recorder.append(step, {"loss": loss})

`load` reads it back, also while it is being written or after its process died. `check` reports its state:

>>> run = load(place)
>>> run
<Trajectory example, clock step, 1 curve>
  loss  (time: 10, group: 2)  time 0 .. 100
>>> report = check(place)
>>> report.state, report.evaluations, report.ok
('finished', 10, True)
>>> float(run["loss"].sel(group="-", time=100).round(3))
0.135

`save` stores a trajectory made elsewhere; existing files are never overwritten:

>>> save(run, place)
Traceback (most recent call last):
...
FileExistsError: ...mine already exists and is never overwritten. Choose a new name.
>>> save(run, f"{runs.name}/copy")
>>> load(f"{runs.name}/copy") == run
True
>>> runs.cleanup()

Runs with different seeds become one trajectory with one more dimension: `stack([run, other])`.
"""

from tiltmeter.record.directory.check import check
from tiltmeter.record.directory.store import load, save
from tiltmeter.record.origin import Origin
from tiltmeter.record.points import HeldPoints, Points
from tiltmeter.record.recorder import Recorder, accept_missing
from tiltmeter.record.trajectory import Trajectory, stack
from tiltmeter.record.when import When, at, every, log_spaced

__all__ = [
    "HeldPoints",
    "Origin",
    "Points",
    "Recorder",
    "Trajectory",
    "When",
    "accept_missing",
    "at",
    "check",
    "every",
    "load",
    "log_spaced",
    "save",
    "stack",
]
