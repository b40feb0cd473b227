"""Studies: grids of runs that are computed once, on one machine or on a cluster, and survive whatever is killed.

A study is a function of settings and the settings to try. `run` computes what is missing; after a crash, an interrupt
or a power cut the same line goes on where it stopped:

>>> from tempfile import TemporaryDirectory
>>> from tiltmeter_lab.study.example_cell import final_gap
>>> folder = TemporaryDirectory()
>>> study = Study(final_gap, {"rho": [0.6, 0.9], "lr": [0.1, 0.2]}, seeds=3, to=f"{folder.name}/first")
>>> print(study.run(progress=False, jobs=1))
12 of 12 cells done, 0 failed, 0 left.

`table` makes one labelled Dataset of the results, `load` finds a study again from its folder alone:

>>> dict(Study.load(f"{folder.name}/first").table().sizes)
{'rho': 2, 'lr': 2, 'seed': 3}
>>> folder.cleanup()
"""

from tiltmeter_lab.study.folder import Failure
from tiltmeter_lab.study.status import Status
from tiltmeter_lab.study.study import Study

__all__ = ["Failure", "Status", "Study"]
