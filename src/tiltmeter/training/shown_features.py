"""ShownFeatures: what went into the last linear layer of a model in its last pass, kept by a hook."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from tiltmeter.interventions.shared.last_features import last_layer


class ShownFeatures:
    """The inputs of the last linear layer, with their graph, until the next pass.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> shown = ShownFeatures(model, "GradientReversal")
    >>> _ = model(torch.zeros(5, 3))
    >>> shown.of(5).shape
    torch.Size([5, 2])
    """

    def __init__(self, model: nn.Module, law: str) -> None:
        self._law = law
        self._kept: list[Tensor] = []
        kept = self._kept

        def keep(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            if module.training:
                kept[:] = [inputs[0]]

        last_layer(model, law).register_forward_pre_hook(keep)

    def __deepcopy__(self, memo: dict[int, Any]) -> ShownFeatures:
        return self  # a copied model has the same hook

    def of(self, points: int) -> Tensor:
        """The features of a batch of so many points that the model has just answered."""
        if not self._kept or self._kept[0].ndim != 2 or len(self._kept[0]) != points:
            found = "none" if not self._kept else f"shape {tuple(self._kept[0].shape)}"
            raise ValueError(
                f"{self._law} needs one row of features for each of the {points} points that `model` has just "
                f"answered in training mode. Found {found}."
            )
        return self._kept[0]
