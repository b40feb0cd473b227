"""The step of the scalars, second layer and bias, which the chain of networks and the direct run share."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def move_scalars(scalars, velocity, push, rate, momentum, nesterov):  # type: ignore[no-untyped-def]
    """SGD with or without momentum; `push` is the gradient, zero for what is not trained."""
    for k in range(scalars.shape[0]):
        now = push[k]
        if momentum > 0.0:
            velocity[k] = momentum * velocity[k] + now
            now = now + momentum * velocity[k] if nesterov > 0.0 else velocity[k]
        scalars[k] -= rate * now
