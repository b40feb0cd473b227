"""Real images in two groups, upright and turned, to test predictions of the Gaussian theory."""

from __future__ import annotations

from typing import Literal

import numpy as np

import tiltmeter as tm
import tiltmeter_lab as lab

Source = Literal["digits", "fashion-mnist"]
UPRIGHT, TURNED = "upright", "turned"
#: How sentences name them.
WORDS: dict[Source, str] = {"digits": "handwritten digits", "fashion-mnist": "Fashion-MNIST"}
#: Pictures, wrong labels and networks are drawn from here on: settings were chosen on those drawn from 0 on.
FRESH = 100


def at_hand(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Those of the sources that this machine has; the digits come with scikit-learn.

    >>> at_hand(("digits",))
    ('digits',)
    """
    return tuple(source for source in sources if source == "digits" or tm.data.is_present(source))


def picture_groups(
    source: Source,
    share: float,
    contrast: tuple[float, float],
    points: int,
    held_out: int,
    turned: bool = True,
    swapped: tuple[int, int] | None = None,
    draw: int = FRESH,
) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Return training data, a `share` of them upright, and held-out data with the same images in both groups.

    >>> train, held_out = picture_groups("digits", 0.8, (0.5, 1.0), points=500, held_out=200)
    >>> train.sizes, held_out.sizes
    ({'upright': 400, 'turned': 100}, {'upright': 200, 'turned': 200})

    There are ten classes. `contrast` multiplies the pixels of the upright and of the turned group. With `swapped`, two
    classes have each other's label in the turned group. With `turned=False` that group is upright too, and only its
    labels differ. `draw` chooses the training and the held-out images.
    """
    x, y, seen, labels = _pictures(source, draw)
    rng = np.random.default_rng(draw)
    order, away = rng.permutation(len(x)), rng.permutation(len(seen))[:held_out]
    many = round(share * points)
    if points > len(x) or held_out > len(seen):
        raise ValueError(
            f"`points` and `held_out` should be at most {len(x)} and {len(seen)}. Found {points} and {held_out}."
        )

    def both(pixels: np.ndarray, target: np.ndarray, up: np.ndarray, down: np.ndarray) -> tm.GroupedData:
        other = np.rot90(pixels[down], 1, (1, 2)) if turned else pixels[down]
        inputs = np.concatenate([pixels[up] * contrast[0], other * contrast[1]])
        mine = target[down].copy()
        if swapped is not None:
            a, b = (target[down] == label for label in swapped)
            mine[a], mine[b] = swapped[1], swapped[0]
        members = np.repeat([UPRIGHT, TURNED], [len(up), len(down)])
        flat = inputs.reshape(len(members), -1).astype(np.float32)
        return tm.GroupedData(flat, np.concatenate([target[up], mine]), members, groups=[UPRIGHT, TURNED])

    return both(x, y, order[:many], order[many:points]), both(seen, labels, away, away)


def _pictures(source: Source, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and held-out images and classes; mean 0 and standard deviation 1 over all pixels."""

    if source == "digits":
        from sklearn.datasets import load_digits

        bunch = load_digits()
        order = np.random.default_rng(draw + 1).permutation(len(bunch.target))
        x, y = lab.data.standardised(bunch.images)[order], bunch.target[order].astype(np.int64)
        return x[:1200], y[:1200], x[1200:], y[1200:]

    train, test = lab.data.fashion_mnist("train"), lab.data.fashion_mnist("test")
    x = lab.data.standardised(np.concatenate([train.x, test.x]))
    cut = len(train)
    return x[:cut], np.asarray(train.y, np.int64), x[cut:], np.asarray(test.y, np.int64)
