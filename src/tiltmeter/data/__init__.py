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
    from tiltmeter.data import synthetic as synthetic
    from tiltmeter.data.grouped import GroupedData as GroupedData
    from tiltmeter.data.public.adult import adult as adult
    from tiltmeter.data.public.bar import ACTIONS as ACTIONS
    from tiltmeter.data.public.bar import bar as bar
    from tiltmeter.data.public.celeba import Faces as Faces
    from tiltmeter.data.public.celeba import celeba as celeba
    from tiltmeter.data.public.cifar10 import cifar10 as cifar10
    from tiltmeter.data.public.compas import compas as compas
    from tiltmeter.data.public.digits import digits as digits
    from tiltmeter.data.public.digits import plain_digits as plain_digits
    from tiltmeter.data.public.german import german as german
    from tiltmeter.data.public.grouping import by_attributes as by_attributes
    from tiltmeter.data.public.grouping import by_classes as by_classes
    from tiltmeter.data.public.grouping import mixed as mixed
    from tiltmeter.data.public.grouping import set_aside as set_aside
    from tiltmeter.data.public.images import Images as Images
    from tiltmeter.data.public.images import standardised as standardised
    from tiltmeter.data.public.mnist import fashion_mnist as fashion_mnist
    from tiltmeter.data.public.mnist import mnist as mnist
    from tiltmeter.data.public.presence import data_folder as data_folder
    from tiltmeter.data.public.presence import is_present as is_present
    from tiltmeter.data.public.utkface import RACES as RACES
    from tiltmeter.data.public.utkface import SEXES as SEXES
    from tiltmeter.data.public.utkface import utkface as utkface
    from tiltmeter.data.public.waterbirds import waterbirds as waterbirds


__all__ = offer(__name__)  # noqa: PLE0605
