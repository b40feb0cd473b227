"""Data: points that belong to groups.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> x, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
>>> group = np.where(np.arange(200) < 160, "majority", "minority")
>>> data = GroupedData(x, y, group)
>>> train, look = data.split(look=0.5, seed=0)
>>> look.sizes
{'majority': 80, 'minority': 20}
"""

from tiltmeter.data.grouped import GroupedData

__all__ = ["GroupedData"]
