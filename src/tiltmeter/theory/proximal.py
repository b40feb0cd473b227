"""The proximal step of a convex loss: the score of a training example, given its score if it were left out."""

from __future__ import annotations

import numpy as np

from tiltmeter.losses import Loss


def proximal(loss: Loss, score: np.ndarray, y: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """argmin over u of (u - score)^2 / 2 + strength * loss(u, y), by Newton steps kept inside a bracket.

    >>> from tiltmeter.losses import Hinge, Square
    >>> one = np.ones(3)
    >>> proximal(Square(), 0.0 * one, one, 3.0 * one).tolist()
    [0.75, 0.75, 0.75]
    >>> proximal(Hinge(), np.array([-1.0, 0.8, 2.0]), one, 0.5 * one).tolist()
    [-0.5, 1.0, 2.0]

    The slope of a convex loss increases, so the answer lies between the score and the score minus strength times the
    slope there. Around a kink (where the slope jumps) a whole interval of scores is mapped to the kink.
    """
    score, y, strength = np.broadcast_arrays(score, y, strength)
    step = strength * loss.gradient(score, y)
    low, high = np.minimum(score, score - step), np.maximum(score, score - step)
    stuck = np.zeros(score.shape, dtype=bool)
    at = np.zeros(score.shape)
    for kink in loss.kinks:
        below, above = pull(loss, kink, y, strength)
        place = kink * y
        here = (score >= place + below) & (score <= place + above)
        stuck, at = stuck | here, np.where(here, place, at)
        low = np.where(score > place + above, np.maximum(low, place), low)
        high = np.where(score < place + below, np.minimum(high, place), high)
    low, high = np.minimum(low, high), np.maximum(low, high)
    u, done, last = 0.5 * (low + high), stuck, high - low
    for _ in range(200):
        miss = u - score + strength * loss.gradient(u, y)
        low, high = np.where(miss <= 0, u, low), np.where(miss >= 0, u, high)
        step = miss / (1.0 + strength * loss.curvature(u, y))
        new = u - step
        # Newton where it stays inside and gets shorter, else halve the bracket.
        trust = (new >= low) & (new <= high) & (np.abs(step) <= 0.5 * last)
        new = np.where(trust, new, 0.5 * (low + high))
        last = np.abs(new - u)
        u = np.where(done, u, new)
        done = done | (last <= 1e-14 * (1.0 + np.abs(u)))
        if done.all():
            break
    return np.where(stuck, at, u)


def pull(loss: Loss, kink: float, y: np.ndarray, strength: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of scores around the kink that is mapped to it (signed offsets, below <= above)."""
    place = kink * y
    below = loss.gradient(np.nextafter(place, -np.inf), y)
    above = loss.gradient(np.nextafter(place, np.inf), y)
    return strength * below, strength * above


def corners(loss: Loss, y: np.ndarray, strength: np.ndarray) -> np.ndarray | None:
    """The scores at which the proximal step has corners, along a new last axis; None for a smooth loss."""
    if not loss.kinks:
        return None
    y, strength = np.broadcast_arrays(y, strength)
    ends = [kink * y + offset for kink in loss.kinks for offset in pull(loss, kink, y, strength)]
    return np.stack(ends, axis=-1)
