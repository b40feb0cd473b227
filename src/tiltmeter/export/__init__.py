"""Export: a run for other programs: tables, NetCDF and Zarr, TensorBoard, experiment trackers.

>>> from tempfile import TemporaryDirectory
>>> from tiltmeter import export, predict
>>> from tiltmeter.problem import cases
>>> run = predict(*cases.centred_crossing(), curves=("loss",))
>>> with TemporaryDirectory() as folder:
...     path = export.to_csv(run, folder + "/loss.csv")
...     print(path.read_text().splitlines()[0])
curve,time,group,value
"""

from tiltmeter.export.history import from_table, from_tensorboard
from tiltmeter.export.netcdf import to_netcdf, to_zarr
from tiltmeter.export.tables import to_csv, to_latex, to_parquet
from tiltmeter.export.trackers import (
    Tracker,
    aim_tracker,
    mlflow_tracker,
    tensorboard_tracker,
    to_tensorboard,
    track,
    trackio_tracker,
    wandb_tracker,
)

__all__ = [
    "Tracker",
    "aim_tracker",
    "from_table",
    "from_tensorboard",
    "mlflow_tracker",
    "tensorboard_tracker",
    "to_csv",
    "to_latex",
    "to_netcdf",
    "to_parquet",
    "to_tensorboard",
    "to_zarr",
    "track",
    "trackio_tracker",
    "wandb_tracker",
]
