"""SeenModel: the model at one moment, for measures that need more than its outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.nested import Nested, Streamed
from tiltmeter.measures.point_loss import PointLoss
from tiltmeter.measures.task import Task, decided
from tiltmeter.modules.forward import Read, answer, flat_scores, like_weights, private, scores


@dataclass(frozen=True)
class SeenModel:
    """A module in evaluation mode, with the held-out points as tensors `x` and `y`.

    Gradients are disabled. A measure that needs them uses `with torch.enable_grad()` and `torch.autograd.grad`, never
    `backward`, so that the gradients of the training do not change.
    """

    module: nn.Module
    task: Task
    loss: PointLoss
    x: Any
    y: Tensor
    read: Read | None = None
    chunk: int = 256
    rule: Callable[[Any], Any] | None = None

    def scores(self, x: Any) -> Tensor:
        """Scores of any inputs, one row per point and one column per output, computed in chunks."""
        points = x if isinstance(x, (Nested, Streamed)) else torch.as_tensor(x)
        if isinstance(points, Tensor) and points.dtype == torch.float64 and self.x.is_floating_point():
            points = points.to(self.x.dtype)
        parts = [part.reshape(len(part), -1) for _, part in scores(self.module, points, self.read, self.chunk)]
        return torch.cat(parts)

    def pass_once(self, x: Any) -> Tensor:
        """Scores of one batch in the shape that the loss takes, (points,) or (points, outputs); with gradients if
        enabled.
        """
        return flat_scores(answer(self.module, private(like_weights(self.module, x))), len(x), self.read)

    def decide(self, score: Tensor) -> np.ndarray:
        """The label chosen for each row of scores, by the user's own rule if one was given."""
        if not self.task.decides:
            raise ValueError("A regression makes no decisions: this measure needs labels.")
        if self.rule is not None:
            values = score.double().cpu().numpy()
            return decided(self.rule, values if self.task.outputs > 1 else values.reshape(len(values)), self.task)
        if self.task.outputs > 1:
            return score.argmax(1).cpu().numpy()
        low, high = self.task.labels
        return np.where(score.reshape(len(score)).cpu().numpy() > (self.task.threshold or 0.0), high, low)

    def losses(self, score: Tensor, y: Tensor) -> Tensor:
        """The loss of each point, for scores as returned by `pass_once`."""
        if self.loss.each is None:
            raise ValueError(f"This measure needs the loss of each point, which {self.loss.definition} does not tell.")
        fitting = y.to(score.device) if score.ndim == 2 else y.to(score.device, score.dtype)
        return self.loss.each(score, fitting)
