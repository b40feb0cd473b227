"""Measures: what is recorded about a model at one moment.

>>> import numpy as np
>>> from tiltmeter.measures.group_metric import GroupMetric
>>> GroupMetric(lambda y_true, y_score: float(np.mean(y_score)), "mean_score", better="neither").name
'mean_score'

A measure is a function of a `Snapshot`, which holds everything that the measure may use. It returns curves by name. The
default measures are in `default_curves`; `GroupMetric` turns any function f(y_true, y_score) into a measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.measures.group_metric import GroupMetric as GroupMetric
    from tiltmeter.measures.group_metric import Sometimes as Sometimes
    from tiltmeter.measures.snapshot import Measure as Measure
    from tiltmeter.measures.snapshot import Snapshot as Snapshot


__all__ = offer(__name__)  # noqa: PLE0605
