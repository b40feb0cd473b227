"""point_losses: the loss of each point as a differentiable function, for measures of gradients."""

from __future__ import annotations

from torch import Tensor

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.tangent.gradient import Losses


def point_losses(seen: SeenModel, y: Tensor | None = None) -> Losses:
    """Losses of the points at given indices, on the model's device and in its precision; `y` replaces their labels."""
    labels = seen.y if y is None else y

    def losses(places: Tensor) -> Tensor:
        return seen.losses(seen.pass_once(seen.x[places]), labels[places])

    return losses
