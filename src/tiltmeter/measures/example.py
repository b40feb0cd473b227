"""example_of: a measure with a suitable small model and data, for tests and for a first try."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.public.digits import digits
from tiltmeter.networks.mlp import mlp
from tiltmeter.passes.streams import put_back, streams

#: Number of points of each group of the digits.
POINTS = 40


def example_of(kind: Any, seed: int = 0) -> tuple[Any, nn.Module, GroupedData]:
    """(measure, model, data): from the class's own `example(seed)`, otherwise its defaults on a few digits.

    >>> class Nothing:
    ...     pass
    >>> _, model, data = example_of(Nothing)
    >>> data.sizes, sum(p.numel() for p in model.parameters())
    ({'turned': 40, 'upright': 40}, 1210)
    """
    before = streams()
    try:
        torch.manual_seed(seed)
        own = getattr(kind, "example", None)
        if own is not None:
            measure, model, data = own(seed)
            return measure, model, data
        return kind(), mlp(64, (16,), 10), few_digits(seed)
    finally:
        put_back(before)


def few_digits(seed: int = 0) -> GroupedData:
    """A few of the digits, the same number from both groups."""
    _, look = digits(seed=seed)
    places = [place for group in look.groups for place in look.of_group(group)[:POINTS]]
    return look.take(places)


def two_labels(seed: int = 0) -> tuple[nn.Module, GroupedData]:
    """The same digits with two labels (5 and above are positive), and a model with one output."""
    found = few_digits(seed)
    members = [found.groups[code] for code in found.codes]
    return mlp(64, (16,), 1), GroupedData(found.x, (found.y >= 5).astype(int), members)
