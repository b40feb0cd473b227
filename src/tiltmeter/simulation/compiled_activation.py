"""Activations of the compiled loops, by number."""

from __future__ import annotations

from math import cosh, erf, exp, pi, sqrt, tanh

from numba import njit

from tiltmeter.problem.activation import Activation, Erf, Identity, ReLU, Tanh

_NUMBERS = {Identity: 0, Erf: 1, ReLU: 2, Tanh: 3}
_HALF = 1.0 / sqrt(2.0)
_STEEP = sqrt(2.0 / pi)


def number_of(activation: Activation) -> int:
    """The number of one of our own activations."""
    try:
        return _NUMBERS[type(activation)]
    except KeyError:
        raise TypeError(
            f"`simulate` knows the activations Identity(), Erf(), ReLU() and Tanh(); `predict` any. Found {activation}."
        ) from None


@njit(nogil=True, cache=True, error_model="numpy")
def activate(number, field):  # type: ignore[no-untyped-def]
    if number == 1:
        return erf(field * _HALF)
    if number == 2:
        return max(field, 0.0)
    if number == 3:
        return tanh(field)
    return field


@njit(nogil=True, cache=True, error_model="numpy")
def slope(number, field):  # type: ignore[no-untyped-def]
    if number == 1:
        return _STEEP * exp(-0.5 * field * field)
    if number == 2:
        return 1.0 if field > 0.0 else 0.0
    if number == 3:
        return 1.0 / cosh(field) ** 2
    return 1.0
