"""The laboratory: measures of simplicity, studies, and published experiments with a verdict on every claim.

>>> import tiltmeter_lab as lab
>>> lab.measures.StableRank().title
'stable rank of every weight matrix and alignment of neighbouring layers'

`measures` look at a model at one moment, a `Study` runs a grid of settings that survives crashes, `data` has generators
and public data sets, `theory` formulas beside those of tiltmeter, `plot` their pictures. `tiltmeter reproduce` runs the
experiments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter_lab import data as data
    from tiltmeter_lab import interventions as interventions
    from tiltmeter_lab import measures as measures
    from tiltmeter_lab import plot as plot
    from tiltmeter_lab import theory as theory
    from tiltmeter_lab.measures.measure import measure as measure
    from tiltmeter_lab.study import Study as Study
    from tiltmeter_lab.study.variance.shares import Shares as Shares
    from tiltmeter_lab.study.variance.shares import shares as shares

__version__ = "0.1.0"

__all__ = ["__version__", *offer(__name__)]  # noqa: PLE0604
