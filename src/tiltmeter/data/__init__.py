"""Data: points that belong to groups.

>>> import numpy as np
>>> from tiltmeter import GroupedData
>>> rng = np.random.default_rng(0)
>>> x, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
>>> group = np.where(np.arange(400) < 320, "majority", "minority")
>>> data = GroupedData(x, y, group)
>>> train, held_out = data.split(held_out=0.5, seed=0)
>>> held_out.sizes
{'majority': 160, 'minority': 40}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData as GroupedData
    from tiltmeter.data.loans import loans as loans
    from tiltmeter.data.loans import loans_table as loans_table
    from tiltmeter.data.public.adult import adult as adult
    from tiltmeter.data.public.compas import compas as compas
    from tiltmeter.data.public.digits import digits as digits
    from tiltmeter.data.public.digits import plain_digits as plain_digits
    from tiltmeter.data.public.presence import data_folder as data_folder
    from tiltmeter.data.public.presence import is_present as is_present
    from tiltmeter.data.shortcut_digits import shortcut_digits as shortcut_digits


__all__ = offer(__name__)  # noqa: PLE0605
