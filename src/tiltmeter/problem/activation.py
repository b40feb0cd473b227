"""Activations of student networks, as values: call one with the fields of the units; `slope` is the derivative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import erf

from tiltmeter.record.labelled import JSON


class Activation(Protocol):
    """Any function of the field of a unit, with its derivative; both take and return arrays."""

    def __call__(self, field: np.ndarray) -> np.ndarray: ...

    def slope(self, field: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Identity:
    """The field itself: a linear unit."""

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(field)

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.ones_like(field)


@dataclass(frozen=True)
class Erf:
    """erf(field / sqrt 2), the sigmoid of Saad and Solla (1995), whose Gaussian integrals have closed forms.

    >>> Erf()(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.6827])
    """

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(erf(field / np.sqrt(2.0)))

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(2.0 / np.pi) * np.exp(-0.5 * field**2))


@dataclass(frozen=True)
class ReLU:
    """The positive part of the field."""

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(field, 0.0))

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(field > 0.0, dtype=float)


@dataclass(frozen=True)
class Tanh:
    """The hyperbolic tangent of the field."""

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh(field))

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 / np.cosh(field) ** 2)


_KINDS = {kind.__name__: kind for kind in (Identity, Erf, ReLU, Tanh)}


def activation_to_json(activation: object) -> JSON:
    """Built-in activations by name; a user's own by its repr, from which it cannot be rebuilt."""
    return type(activation).__name__ if type(activation) in _KINDS.values() else {"repr": repr(activation)}


def activation_from_json(value: JSON) -> Activation:
    if not isinstance(value, str) or value not in _KINDS:
        raise ValueError(f"The activation {value!r} was a user's own and cannot be rebuilt from a file.")
    return _KINDS[value]()
