"""point_losses: the loss of each point as a differentiable function, for measures of gradients."""

from __future__ import annotations

from torch import Tensor

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.tangent.gradient import Losses, trained


def point_losses(seen: SeenModel, y: Tensor | None = None) -> Losses:
    """Losses of the points at some places, on the model's device and in its precision; `y` replaces their labels."""
    like = trained(seen.module)[0]
    labels = seen.y if y is None else y

    def losses(places: Tensor) -> Tensor:
        return seen.losses(seen.pass_once(_beside(seen.x[places], like)), labels[places])

    return losses


def _beside(x: Tensor, like: Tensor) -> Tensor:
    return x.to(like.device, like.dtype) if x.is_floating_point() else x.to(like.device)
