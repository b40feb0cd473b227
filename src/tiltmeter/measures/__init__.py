"""Measures: what is read off a model at one look.

A measure is a function of a `Snapshot`, which holds all that it may see, and returns curves by name. Those that come by
default are in `defaults`; any function f(y_true, y_score) becomes one with `GroupMetric`.

>>> import numpy as np
>>> from tiltmeter.measures.group_metric import GroupMetric
>>> GroupMetric(lambda y_true, y_score: float(np.mean(y_score)), "mean_score", better="neither").name
'mean_score'
"""

from tiltmeter.measures.group_metric import GroupMetric
from tiltmeter.measures.snapshot import Measure, Snapshot

__all__ = ["GroupMetric", "Measure", "Snapshot"]
