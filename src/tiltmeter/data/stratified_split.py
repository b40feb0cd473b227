"""stratified_split: which points go to which part, so that every group gives each part its share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np


def stratified_split(members: Mapping[Hashable, np.ndarray], shares: Mapping[str, float], seed: int) -> np.ndarray:
    """The part of every point: 0 for training, then 1, 2, ... in the order of `shares`, each with its share of a group.

    >>> stratified_split({"a": np.arange(4), "b": np.arange(4, 8)}, {"held_out": 0.25}, seed=0).tolist().count(1)
    2

    `members` holds the places of the points of every group.
    """
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
            raise ValueError(f"`{name}` should be a share strictly between 0 and 1. Found {name} = {share!r}.")
    if sum(shares.values()) >= 1:
        told = " + ".join(map(str, shares.values()))
        raise ValueError(f"`held_out` and `judge` should leave points to train on. Found {told} of all.")
    rng = np.random.default_rng(seed)
    part_of = np.zeros(sum(map(len, members.values())), dtype=np.int8)
    for group, own in members.items():
        counts = [round(share * len(own)) for share in shares.values()]
        if min(counts) < 1 or sum(counts) >= len(own):
            raise ValueError(
                f"{'Both' if len(shares) == 1 else 'All'} parts should have points of every group. Found that group "
                f"{group!r} with {len(own)} points would have {' and '.join(map(str, counts))} held-out points."
            )
        order, start = rng.permutation(own), 0
        for place, count in enumerate(counts, 1):
            part_of[order[start : start + count]] = place
            start += count
    return part_of
