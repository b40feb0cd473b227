"""QuickGradients: gradients of stacked twins by formulas, written to the same memory at every step.

Twins are small: a step through autograd takes several times as long as its products. Where all activations and the loss
are known, nothing but their formulas is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.forecast.score_slopes import ScoreSlopes
from tiltmeter.training.stacked import Stacked
from tiltmeter.training.stacked_linear_layers import BACK, Affine, Layer


class QuickGradients:
    """`gradients` holds, after a call, the gradients of all runs at a batch, by parameter."""

    def __init__(self, stacked: Stacked, slopes: ScoreSlopes) -> None:
        assert stacked.layers is not None
        self._slopes = slopes
        trained = set(stacked.trained)
        self._layers: list[_Line | _Activation] = [
            _Line(stacked, one, trained) if isinstance(one, Affine) else _Activation(one) for one in stacked.layers
        ]
        self.gradients: dict[str, Tensor] = {}
        for one in self._layers:
            if isinstance(one, _Line):
                self.gradients |= one.gradients
        # Below the first layer that is trained nothing is asked for.
        self._first = min((n for n, one in enumerate(self._layers) if isinstance(one, _Line) and one.gradients))

    @staticmethod
    def known(layers: Sequence[Layer] | None) -> bool:
        """Whether the derivatives of all of these layers are known."""
        return layers is not None and all(isinstance(one, Affine) or type(one) in BACK for one in layers)

    def __call__(self, x: Tensor, added: Tensor | None, places: Tensor) -> None:
        """At points x (runs or 1, batch, inputs), to whose scores `added` (runs, batch, outputs) is added."""
        seen = [x]
        for layer in self._layers:
            seen.append(layer(seen[-1]))
        scores = seen[-1] if added is None else seen[-1] + added
        slopes = self._slopes(scores, places)
        for place in range(len(self._layers) - 1, self._first - 1, -1):
            layer = self._layers[place]
            if isinstance(layer, _Line):
                layer.write(seen[place], slopes)
                if place == self._first:
                    return
            slopes = layer.back(slopes, seen[place + 1])


class _Activation:
    """A function of every number by itself."""

    def __init__(self, layer: Any) -> None:
        forward = {nn.ReLU: torch.relu, nn.Tanh: torch.tanh, nn.Sigmoid: torch.sigmoid}
        self._forward: Callable[[Tensor], Tensor] = forward.get(type(layer), layer)
        self._back = BACK[type(layer)]

    def __call__(self, x: Tensor) -> Tensor:
        return self._forward(x)

    def back(self, slopes: Tensor, outputs: Tensor) -> Tensor:
        """The derivatives by the inputs."""
        return self._back(slopes, outputs)


class _Line:
    """A Linear layer of all runs with views of its parameters, made once, and memory for their gradients."""

    def __init__(self, stacked: Stacked, names: Affine, trained: set[str]) -> None:
        self._weight = stacked.parameters[names.weight]
        self._flipped = self._weight.transpose(1, 2)
        self._bias = None if names.bias is None else stacked.parameters[names.bias].unsqueeze(1)
        own = [name for name in (names.weight, names.bias) if name in trained]
        self.gradients = {name: torch.empty_like(stacked.parameters[name]) for name in own if name is not None}
        self._slope = self.gradients.get(names.weight)
        self._turned = None if self._slope is None else self._slope.transpose(1, 2)
        self._offset = None if names.bias is None else self.gradients.get(names.bias)
        self._single, self._runs = self._weight.shape[1] == 1, len(self._weight)

    def __call__(self, x: Tensor) -> Tensor:
        if self._single:
            score = (x * self._weight).sum(-1, keepdim=True)
            return score if self._bias is None else score.add_(self._bias)
        x = x.expand(self._runs, -1, -1)
        return x.bmm(self._flipped) if self._bias is None else torch.baddbmm(self._bias, x, self._flipped)

    def write(self, inputs: Tensor, slopes: Tensor) -> None:
        """The gradients, from the layer's inputs and the derivatives by its outputs."""
        if self._slope is not None:
            if self._single:
                torch.sum(slopes * inputs, 1, keepdim=True, out=self._slope)
            else:
                torch.bmm(inputs.expand(self._runs, -1, -1).transpose(1, 2), slopes, out=self._turned)
        if self._offset is not None:
            torch.sum(slopes, 1, out=self._offset)

    def back(self, slopes: Tensor, outputs: Tensor) -> Tensor:  # noqa: ARG002
        """The derivatives by the inputs."""
        return slopes * self._weight if self._single else slopes.bmm(self._weight)
