"""Export: a run for other programs: tables, NetCDF and Zarr, TensorBoard, experiment trackers; and runs from theirs.

`write` writes a file of the kind that its name says, `track` sends a run to an experiment tracker; `from_table` and
`from_tensorboard` read what other programs recorded.
"""

from tiltmeter.export.files import write
from tiltmeter.export.history import from_table, from_tensorboard
from tiltmeter.export.trackers import track

__all__ = ["from_table", "from_tensorboard", "track", "write"]
