"""Modes: how far gradient descent has moved along each eigenvector of the kernel, for the squared loss."""

from __future__ import annotations

import numpy as np

from tiltmeter.recipe.plain_sgd import PlainSGD


def responses(curvatures: np.ndarray, optimiser: PlainSGD, looks: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the response of each mode to a unit pull, at the steps `looks`: arrays (looks, modes).

    >>> one, _ = responses(np.array([2.0]), PlainSGD(lr=0.1, steps=10), np.array([0, 1, 10]))
    >>> (-one[:, 0]).round(4).tolist(), round((1 - 0.8**10) / 2, 4)
    ([0.0, 0.1, 0.4463], 0.4463)

    The first array is for a constant pull; the second (None without weight decay) for the pull of the shrinking initial
    weights. Both follow the exact updates of torch.optim.SGD on the linearised model, averaged over batches. They
    differ from the gradient flow when lr times curvature is not small.
    """
    if optimiser.plain:
        return -_closed(curvatures, float(optimiser.lr), looks), None
    return _recursion(curvatures, optimiser, looks)


def flow_responses(curvatures: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The same for the gradient flow at these times, -(1 - exp(-curvature time)) / curvature."""
    product = np.outer(times, curvatures)
    small = np.abs(product) < 1e-12
    exact = np.expm1(-product) / np.where(curvatures == 0, 1.0, curvatures)
    return np.where(small, -times[:, None], exact)


def _closed(curvatures: np.ndarray, lr: float, looks: np.ndarray) -> np.ndarray:
    """Return (1 - (1 - lr c)^step) / c without cancellation, also where c is nearly 0 or lr c exceeds 1."""
    x = lr * curvatures
    calm = np.abs(x) < 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        gone = -np.expm1(np.outer(looks, np.log1p(np.where(calm, -x, 0.0))))
        wild = 1.0 - np.power.outer(np.where(calm, 0.0, 1.0 - x), looks).T
    still = np.abs(x) * max(1, int(looks.max(initial=0))) < 1e-14
    moved = np.where(calm, gone, wild) / np.where(still, 1.0, curvatures)
    return np.where(still, lr * looks[:, None], moved)


def _recursion(curvatures: np.ndarray, optimiser: PlainSGD, looks: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the responses step by step: momentum, weight decay and schedules have no closed form."""
    momentum, decay = optimiser.momentum, optimiser.weight_decay
    stiffness = curvatures + decay
    # Row 0 is for the constant pull, row 1 for the shrinking initial weights.
    rows = 2 if decay else 1
    place, speed = np.zeros((rows, len(curvatures))), np.zeros((rows, len(curvatures)))
    pull = np.ones((rows, 1))
    kept, kept_speed = 1.0, 0.0  # the factor on the initial weights
    found = np.zeros((len(looks), rows, len(curvatures)))
    wanted = {int(step): row for row, step in enumerate(looks)}
    with np.errstate(over="ignore", invalid="ignore"):
        for step, lr in enumerate(optimiser.rates()):
            if rows == 2:
                pull[1] = kept - 1.0
            speed *= momentum
            speed += pull + stiffness * place
            place -= lr * speed
            if decay:
                kept_speed = momentum * kept_speed + decay * kept
                kept -= lr * kept_speed
            if step + 1 in wanted:
                found[wanted[step + 1]] = place
    return found[:, 0], found[:, 1] if rows == 2 else None


def kept_weights(optimiser: PlainSGD, looks: np.ndarray) -> np.ndarray:
    """The factor by which weight decay alone has shrunk the initial weights by these steps."""
    kept, speed = 1.0, 0.0
    course = [kept]
    if not optimiser.weight_decay:
        return np.ones(len(looks))
    for lr in optimiser.rates():
        speed = optimiser.momentum * speed + optimiser.weight_decay * kept
        kept -= lr * speed
        course.append(kept)
    return np.asarray([course[step] for step in looks.tolist()])
