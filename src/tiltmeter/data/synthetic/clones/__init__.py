"""Clones: data sets that share chosen statistics with the original data and nothing else.

>>> import numpy as np
>>> from tiltmeter.data import GroupedData
>>> data = GroupedData(np.random.default_rng(0).exponential(size=(400, 3)), [0, 1] * 200, [0, 1] * 200)
>>> clone = ClassCovariance()(data, seed=1)
>>> bool((clone.y == data.y).all()), bool((data.x < 0).any()), bool((clone.x < 0).any())
(True, False, True)

A clone keeps labels, groups and their order, and draws new points. An edit moves the points themselves to the
statistics of another class, and gives them the label of that class.
"""

from tiltmeter.data.synthetic.clones.by_class import Clone
from tiltmeter.data.synthetic.clones.cube import MaxEntropyCube
from tiltmeter.data.synthetic.clones.edits import GaussianTransport, MeanShift, QuantileEdit
from tiltmeter.data.synthetic.clones.gaussian import ClassCovariance, Isotropic, SharedCovariance
from tiltmeter.data.synthetic.clones.marginals import IndependentMarginals

__all__ = [
    "ClassCovariance",
    "Clone",
    "GaussianTransport",
    "IndependentMarginals",
    "Isotropic",
    "MaxEntropyCube",
    "MeanShift",
    "QuantileEdit",
    "SharedCovariance",
]
