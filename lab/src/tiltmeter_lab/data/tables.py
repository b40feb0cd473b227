"""The data sets of the laboratory that a TOML file of `tiltmeter train` may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tiltmeter import GroupedData
from tiltmeter_lab.data.cifar10 import cifar10
from tiltmeter_lab.data.german import german
from tiltmeter_lab.data.grouping import by_classes, mixed, named_classes, set_aside
from tiltmeter_lab.data.images import Images
from tiltmeter_lab.data.mnist import fashion_mnist, mnist

PICTURES: dict[str, Callable[[], Images]] = {"mnist": mnist, "fashion-mnist": fashion_mnist, "cifar10": cifar10}
NAMES = ("german", *PICTURES)
#: Number of held-out points of each group, for images.
HELD_OUT = 1000


def public_data(source: str, given: Mapping[str, Any]) -> tuple[GroupedData, GroupedData]:
    """Training and held-out data from a data set that `tiltmeter data list` names."""
    seed = given.get("seed", 0)
    if source == "german":
        return german(given.get("group", "sex"), seed=seed)
    if "classes" not in given:
        raise KeyError(
            f'[data] of {source} needs `classes`, such as {{ a = [["1"], ["2"]], b = [["3"], ["4"]] }}: for each '
            "group the classes labelled 1 and those labelled -1."
        )
    images = PICTURES[source]()
    data = by_classes(images.standard(), images.y, named_classes(images, given["classes"]))
    train, held_out = set_aside(data, given.get("held_out", HELD_OUT), np.random.default_rng(seed))
    return (mixed(train, given["shares"], seed) if "shares" in given else train), held_out
