"""Data: points that belong to groups.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> x, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
>>> group = np.where(np.arange(400) < 320, "majority", "minority")
>>> data = GroupedData(x, y, group)
>>> train, look = data.split(look=0.5, seed=0)
>>> look.sizes
{'majority': 160, 'minority': 40}
"""

from tiltmeter.data.grouped import GroupedData

__all__ = ["GroupedData"]
