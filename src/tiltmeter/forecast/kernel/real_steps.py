"""Real steps: a few steps of plain SGD on a copy of the network, to see how far its kernel turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.sample import masses
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import flat_scores
from tiltmeter.passes.streams import put_back, streams
from tiltmeter.tangent.rotation import rotation

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: Points whose kernel is measured again.
POINTS = 200


def turned(tangent: Tangent, question: Question, steps: int, seed: int = 0) -> float:
    """Train a copy of the network for some steps and return the angle in degrees by which its kernel has turned.

    The angle is infinite if these steps diverge. Batches are drawn from the sample, every point as often as it counts.
    The model itself is not changed.
    """
    mass = masses(tangent.sample, tangent.stands_for, tangent.shares, question.weights, question.proportions)
    batch = min(question.batch or len(mass), len(mass))
    x, y, optimiser, kernel_of = tangent.points(), tangent.sample.y, question.sgd, tangent.kernel_of
    own = deep_copy(tangent.model)
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
            score = flat_scores(own(x[places].to(like.device)), batch, tangent.read)
            several = score.ndim == 2
            goal = torch.as_tensor(y)[places].to(like.device)
            goal = goal.long() if several else goal.to(score.dtype)
            made.param_groups[0]["lr"] = float(given[min(step, len(given) - 1)])
            made.zero_grad()
            value = point_loss(question.loss, score.detach(), goal, labels).whole(score, goal)
            (value * float(mass.mean())).backward()  # type: ignore[no-untyped-call]
            made.step()
    finally:
        put_back(state)
    if not all(torch.isfinite(p).all() for p in own.parameters()):
        return float("inf")
    try:
        return rotation(before, kernel_of(own, watched)).degrees
    except ValueError:  # the outputs are no longer finite, or all units are dead
        return float("inf")
