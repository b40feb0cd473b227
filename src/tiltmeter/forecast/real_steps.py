"""Real steps: a little plain SGD on a copy of the network, to see how far its kernel turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.measures.point_loss import point_loss
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read, flat_scores
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.recipe.plain_sgd import PlainSGD
from tiltmeter.tangent.rotation import rotation

#: Points whose kernel is measured again.
POINTS = 200


def turned(
    model: nn.Module,
    x: Tensor,
    y: np.ndarray,
    mass: np.ndarray,
    loss: Any,
    optimiser: PlainSGD,
    batch: int,
    steps: int,
    read: Read | None,
    kernel_of: Callable[[nn.Module, Tensor], np.ndarray],
    seed: int,
) -> float:
    """The angle in degrees by which the kernel has turned after these real steps; infinite where they diverge.

    A batch is drawn from the sample, every point as often as it counts; the model itself is left alone.
    """
    own = deep_copy(model)
    rng = np.random.default_rng(seed)
    watched = x[torch.as_tensor(np.sort(rng.permutation(len(x))[:POINTS]))]
    chance = mass / mass.sum()
    labels = np.unique(y).tolist()
    like = next(p for p in own.parameters() if p.is_floating_point())
    before = kernel_of(own, watched)
    given = optimiser.rates()
    made = torch.optim.SGD(own.parameters(), lr=1.0, momentum=optimiser.momentum, weight_decay=optimiser.weight_decay)
    own.train()
    state = streams()
    try:
        torch.manual_seed(seed)
        for step in range(steps):
            places = torch.as_tensor(rng.choice(len(x), batch, p=chance))
            score = flat_scores(own(x[places].to(like.device)), batch, read)
            several = score.ndim == 2
            goal = torch.as_tensor(y)[places].to(like.device)
            goal = goal.long() if several else goal.to(score.dtype)
            made.param_groups[0]["lr"] = float(given[min(step, len(given) - 1)])
            made.zero_grad()
            value = point_loss(loss, score.detach(), goal, labels).whole(score, goal)
            (value * float(mass.mean())).backward()  # type: ignore[no-untyped-call]
            made.step()
    finally:
        put_back(state)
    if not all(torch.isfinite(p).all() for p in own.parameters()):
        return float("inf")
    try:
        return rotation(before, kernel_of(own, watched)).degrees
    except ValueError:  # outputs that are no longer finite, or a network that died
        return float("inf")
