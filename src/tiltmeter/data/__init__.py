"""Data: points that belong to groups.

>>> import numpy as np
>>> from tiltmeter import GroupedData
>>> rng = np.random.default_rng(0)
>>> x, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
>>> group = np.where(np.arange(400) < 320, "majority", "minority")
>>> data = GroupedData(x, y, group)
>>> train, look = data.split(look=0.5, seed=0)
>>> look.sizes
{'majority': 160, 'minority': 40}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.data.grouped import GroupedData as GroupedData
    from tiltmeter.data.public.adult import adult as adult
    from tiltmeter.data.public.celeba import celeba as celeba
    from tiltmeter.data.public.cifar10 import cifar10 as cifar10
    from tiltmeter.data.public.compas import compas as compas
    from tiltmeter.data.public.digits import digits as digits
    from tiltmeter.data.public.fashion_mnist import fashion_mnist as fashion_mnist
    from tiltmeter.data.public.german import german as german
    from tiltmeter.data.public.mnist import mnist as mnist
    from tiltmeter.data.public.plain_digits import plain_digits as plain_digits
    from tiltmeter.data.public.waterbirds import waterbirds as waterbirds
    from tiltmeter.data.synthetic.samples import samples as samples

_HOMES = {
    "GroupedData": "data.grouped",
    "digits": "data.public.digits",
    "plain_digits": "data.public.plain_digits",
    "mnist": "data.public.mnist",
    "fashion_mnist": "data.public.fashion_mnist",
    "cifar10": "data.public.cifar10",
    "adult": "data.public.adult",
    "compas": "data.public.compas",
    "german": "data.public.german",
    "celeba": "data.public.celeba",
    "waterbirds": "data.public.waterbirds",
    "samples": "data.synthetic.samples",
}

__all__ = offer(__name__, _HOMES)  # noqa: PLE0605
