"""Export: save a run for other programs, as CSV, Parquet or TensorBoard event files.

>>> from tempfile import TemporaryDirectory
>>> from tiltmeter import export, predict
>>> from tiltmeter.problem import cases
>>> run = predict(*cases.centred_crossing(), curves=("loss",))
>>> with TemporaryDirectory() as folder:
...     path = export.to_csv(run, folder + "/loss.csv")
...     print(path.read_text().splitlines()[0])
curve,time,group,value
"""

from tiltmeter.export.csv import to_csv
from tiltmeter.export.history import from_table, from_tensorboard
from tiltmeter.export.latex import to_latex
from tiltmeter.export.parquet import to_parquet
from tiltmeter.export.tensorboard import to_tensorboard

__all__ = ["from_table", "from_tensorboard", "to_csv", "to_latex", "to_parquet", "to_tensorboard"]
