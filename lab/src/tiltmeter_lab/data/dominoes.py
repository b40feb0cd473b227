"""dominoes: two images in one, an easy one that usually predicts the label and a hard one that always does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData


def dominoes(
    easy: Any,
    easy_labels: Any,
    hard: Any,
    hard_labels: Any,
    agreement: float = 1.0,
    cells: bool = False,
    seed: int = 0,
) -> GroupedData:
    """Every hard image below an easy one, with the label of the hard image; a share `agreement` of pairs has equal
    labels.

    >>> ones, labels = np.ones((200, 4, 4)), np.arange(200) % 2
    >>> data = dominoes(ones, labels, 2 * ones, labels, agreement=0.5)
    >>> data.x.shape, data.sizes["agree"] > data.sizes["disagree"]
    ((200, 8, 4), True)

    Images (points, height, width) or (points, channels, height, width) are placed one above the other; the narrower one
    is centred and padded with zeros, and the one with fewer channels is repeated. Flat arrays (points, features) are
    placed side by side, easy first. The other pairs get an easy image with a label drawn from *all* labels. So
    `agreement=0` is the independent ("out of distribution") set, in which 1 in C still agree by chance.

    Groups are "agree" and "disagree" (as far as both occur). With `cells` they are the pairs (easy label, hard label)
    that `CueAdoption` uses. There are many of these, so there is no warning about small ones.

    Args:
        easy: Images above, or features that come first.
        easy_labels: Labels of the easy images.
        hard: Images below, or features that come second.
        hard_labels: Labels of the hard images; they are the labels of the result.
        agreement: Share of pairs that have equal labels; 0: easy labels are drawn independently.
        cells: Whether groups are the pairs (easy label, hard label) instead of "agree" and "disagree".
        seed: Seed of the random draws; the same seed gives the same points.
    """
    if not 0 <= agreement <= 1:
        raise ValueError(f"`agreement` should be a share from 0 to 1. Found agreement = {agreement}.")
    upper, lower = np.asarray(easy), np.asarray(hard)
    cue, y = np.asarray(easy_labels), np.asarray(hard_labels)
    if len(upper) != len(cue) or len(lower) != len(y):
        raise ValueError(
            f"Every image should have a label. Found {len(upper)} easy images with {len(cue)} labels and {len(lower)} "
            f"hard ones with {len(y)}."
        )
    labels = np.unique(y)
    lacking = np.setdiff1d(labels, cue)
    if len(lacking):
        raise ValueError(f"Every hard label should occur among the easy ones. Found no easy image of {lacking[0]}.")
    rng = np.random.default_rng(seed)
    kept = np.zeros(len(y), dtype=bool)
    kept[rng.permutation(len(y))[: round(agreement * len(y))]] = True
    shown = np.where(kept, y, rng.choice(labels, len(y)))
    chosen = np.empty(len(y), dtype=np.int64)
    for label in labels:
        wanted = shown == label
        chosen[wanted] = rng.choice(np.flatnonzero(cue == label), int(wanted.sum()))
    x = joined(upper[chosen], lower)
    if not cells:
        return GroupedData(x, y, np.where(shown == y, "agree", "disagree"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GroupedData(x, y, list(zip(shown.tolist(), y.tolist(), strict=True)))


def one_hot_block(labels: Any, amplitude: float = 3.0, classes: int | None = None) -> np.ndarray:
    """The easiest cue there is: one coordinate per class, `amplitude` at that of the label; amplitude 0 is the control.

    >>> one_hot_block([0, 2], 3.0).tolist()
    [[3.0, 0.0, 0.0], [0.0, 0.0, 3.0]]

    Args:
        labels: Label of every point.
        amplitude: Value at the coordinate of the label; 0 is the control.
        classes: Number of coordinates; None: the number of labels.
    """
    places = np.asarray(labels, dtype=np.int64)
    return amplitude * np.eye(int(places.max()) + 1 if classes is None else classes)[places]


def joined(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Images one above the other, or flat points side by side."""
    if upper.ndim != lower.ndim and {upper.ndim, lower.ndim} == {3, 4}:
        upper, lower = (part[:, None] if part.ndim == 3 else part for part in (upper, lower))
    if upper.ndim != lower.ndim or upper.ndim not in (2, 3, 4):
        raise ValueError(
            f"Both parts should be images, or both flat points. Found shapes {upper.shape[1:]} and {lower.shape[1:]}."
        )
    if upper.ndim == 2:
        return np.concatenate([upper, lower], axis=1)
    if upper.ndim == 4 and upper.shape[1] != lower.shape[1]:
        most = max(upper.shape[1], lower.shape[1])
        upper, lower = (np.repeat(p, most, axis=1) if p.shape[1] == 1 else p for p in (upper, lower))
    width = max(upper.shape[-1], lower.shape[-1])
    return np.concatenate([_padded(upper, width), _padded(lower, width)], axis=-2)


def _padded(images: np.ndarray, width: int) -> np.ndarray:
    missing = width - images.shape[-1]
    around = [(0, 0)] * (images.ndim - 1) + [(missing // 2, missing - missing // 2)]
    return np.pad(images, around)
