"""Public data sets in the file of `tiltmeter train`: [data] source = "adult", or images with groups made of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.adult import adult
from tiltmeter.data.public.cifar10 import cifar10
from tiltmeter.data.public.compas import compas
from tiltmeter.data.public.fashion_mnist import fashion_mnist
from tiltmeter.data.public.german import german
from tiltmeter.data.public.grouping import by_classes, mixed, named_classes, set_aside
from tiltmeter.data.public.images import Images
from tiltmeter.data.public.mnist import mnist

PICTURES: dict[str, Callable[[], Images]] = {"mnist": mnist, "fashion-mnist": fashion_mnist, "cifar10": cifar10}
TABLES_OF_PEOPLE = ("adult", "compas", "german")
#: Number of held-out points of each group, for images.
LOOK = 1000


def public_data(source: str, given: Mapping[str, Any]) -> tuple[GroupedData, GroupedData]:
    """Training and held-out data from a data set that `tiltmeter data list` names."""
    if source == "adult":
        return adult(given.get("group", "sex"))
    seed = given.get("seed", 0)
    if source == "compas":
        return compas(tuple(given.get("group", ("African-American", "Caucasian"))), seed=seed)
    if source == "german":
        return german(given.get("group", "sex"), seed=seed)
    if "classes" not in given:
        raise KeyError(
            f'[data] of {source} needs `classes`, such as {{ a = [["1"], ["2"]], b = [["3"], ["4"]] }}: for each '
            "group the classes labelled 1 and those labelled -1."
        )
    images = PICTURES[source]()
    data = by_classes(images.standard(), images.y, named_classes(images, given["classes"]))
    train, look = set_aside(data, given.get("look", LOOK), np.random.default_rng(seed))
    return (mixed(train, given["shares"], seed) if "shares" in given else train), look
