"""GroupScores: a model whose scores are scaled and shifted by the group of the point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class GroupScores(nn.Module):
    """scale_g (score - shift_g), for points whose groups are known: the model itself is not changed.

    >>> model = GroupScores(nn.Linear(1, 1, bias=False), ("a", "b"), [1.0, 0.5], [0.0, 2.0])
    >>> _ = nn.init.ones_(model.model.weight)
    >>> model(torch.tensor([[3.0], [3.0]]), ["a", "b"])
    tensor([3.0000, 0.5000], grad_fn=<MulBackward0>)
    """

    scale: Tensor
    shift: Tensor

    def __init__(
        self, model: nn.Module, groups: tuple[Any, ...], scale: Sequence[float], shift: Sequence[float]
    ) -> None:
        super().__init__()
        self.model, self.groups = model, tuple(groups)
        for name, values in (("scale", scale), ("shift", shift)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float64))

    def forward(self, x: Any, group: Sequence[Any]) -> Tensor:
        """The scores of points of these groups, by name."""
        unknown = [one for one in group if one not in self.groups]
        if unknown:
            listed = ", ".join(map(repr, self.groups))
            raise KeyError(f"`group` names the unknown group {unknown[0]!r}. There are: {listed}.")
        found = self.model(x)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        return self.rescored(found, torch.tensor([self.groups.index(one) for one in group]))

    def codes_of(self, data: Any) -> Tensor:
        """The code of every point of these data among the groups of this module."""
        known = torch.tensor([self.groups.index(one) for one in data.groups])
        return known[torch.as_tensor(data.codes, dtype=torch.int64)]

    def rescored(self, scores: Tensor, codes: Tensor) -> Tensor:
        """Scores (points,) or (points, outputs) of points of these groups, by code."""
        where = codes.to(self.scale.device)
        scale, shift = (part[where].to(scores) for part in (self.scale, self.shift))
        if scores.ndim == 2:
            scale, shift = scale[:, None], shift[:, None]
        return scale * (scores - shift)
