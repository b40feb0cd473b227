"""Simultaneous bands: limits for the differences of groups at all looks together, from one number per point and look.

>>> import numpy as np
>>> from tiltmeter.analysis.simultaneous.bands import bands
>>> from tiltmeter.analysis.simultaneous.contrasts import pairs
>>> from tiltmeter.analysis.simultaneous.point_curve import PointCurve
>>> rng = np.random.default_rng(0)
>>> code = np.repeat([0, 1], 200)
>>> loss = PointCurve("loss", rng.normal(size=(5, 400)) + np.outer([0, 0, 0, 1, 1], code == 0))
>>> found = bands([loss], code, pairs(2))["loss"]
>>> found.shown[:, 0].tolist()
[0, 0, 0, 1, 1]
"""
