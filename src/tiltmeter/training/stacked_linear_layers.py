"""Many stacks of Linear layers at once: one batched product per layer, forward and back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

#: Elementwise modules without parameters: they need no stacking.
ELEMENTWISE = (
    nn.ELU,
    nn.GELU,
    nn.Hardsigmoid,
    nn.Hardswish,
    nn.Hardtanh,
    nn.Identity,
    nn.LeakyReLU,
    nn.Mish,
    nn.ReLU,
    nn.SELU,
    nn.SiLU,
    nn.Sigmoid,
    nn.Softplus,
    nn.Softsign,
    nn.Tanh,
)


class Product(NamedTuple):
    """The gradient of stacked weights as a product that is not yet computed: inputs transposed times `slopes`.

    `inputs` has shape (runs, batch, in), `slopes`, the derivatives with respect to the layer's outputs, (runs, batch,
    out). A plain SGD step can add the product to the weights without storing it.
    """

    inputs: Tensor
    slopes: Tensor

    def dense(self, out: Tensor) -> Tensor:
        """The gradient of weights of shape (runs, out, in), written to `out`."""
        if self.slopes.shape[2] == 1:
            return torch.sum(self.slopes * self.inputs, 1, keepdim=True, out=out)
        torch.bmm(self.inputs.transpose(1, 2), self.slopes, out=out.transpose(1, 2))
        return out


@dataclass(frozen=True)
class Affine:
    """A Linear layer of all runs, by the names of its parameters."""

    weight: str
    bias: str | None

    def __call__(self, parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
        weight = parameters[self.weight]
        bias = None if self.bias is None else parameters[self.bias].unsqueeze(1)
        if weight.shape[1] == 1:  # a batched product with a single column is several times slower than a sum
            score = (x * weight).sum(-1, keepdim=True)
            return score if bias is None else score.add_(bias)
        x = x.expand(len(weight), -1, -1)
        flipped = weight.transpose(1, 2)
        return x.bmm(flipped) if bias is None else torch.baddbmm(bias, x, flipped)

    def back(self, parameters: Mapping[str, Tensor], slopes: Tensor) -> Tensor:
        """The derivatives with respect to the inputs, from those with respect to the outputs."""
        weight = parameters[self.weight]
        return slopes * weight if weight.shape[1] == 1 else slopes.bmm(weight)


#: A Linear layer, or a function of every number by itself.
Layer: TypeAlias = Affine | Callable[[Tensor], Tensor]

#: For activations whose derivative follows from their outputs: derivatives with respect to their inputs, from those
#: with respect to their outputs. Autograd calls the same functions.
BACK: dict[type, Callable[[Tensor, Tensor], Tensor]] = {
    nn.ReLU: lambda slopes, outputs: torch.ops.aten.threshold_backward(slopes, outputs, 0),
    nn.Tanh: lambda slopes, outputs: torch.ops.aten.tanh_backward(slopes, outputs),
    nn.Sigmoid: lambda slopes, outputs: torch.ops.aten.sigmoid_backward(slopes, outputs),
    nn.Identity: lambda slopes, outputs: slopes,  # noqa: ARG005
}


def linear_layers(model: nn.Module) -> tuple[Layer, ...] | None:
    """The layers of a stack of Linear layers and activations; None for any other module, subclasses included.

    >>> len(linear_layers(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))))
    3
    >>> linear_layers(nn.Sequential(nn.Conv1d(1, 2, 3))) is None
    True
    """
    leaves = list(_leaves("", model))
    modules = [module for _, module in leaves]
    if len(set(map(id, modules))) < len(modules) or any(_has_hooks(module) for module in model.modules()):
        return None
    layers: list[Layer] = []
    for name, module in leaves:
        if type(module) is nn.Linear and set(dict(module.named_parameters())) <= {"weight", "bias"}:
            prefix = f"{name}." if name else ""
            layers.append(Affine(f"{prefix}weight", None if module.bias is None else f"{prefix}bias"))
        elif type(module) in ELEMENTWISE:
            layers.append(_elementwise(module))
        else:
            return None
    named = [parameter for _, parameter in model.named_parameters(remove_duplicate=False)]
    return tuple(layers) if len(set(map(id, named))) == len(named) and layers else None


def run_chain(layers: Sequence[Layer], parameters: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Return the outputs of all runs; x has shape (runs, points, features), or (1, points, features) if shared."""
    for layer in layers:
        x = layer(parameters, x) if isinstance(layer, Affine) else layer(x)
    return x


def differentiate_chain(
    layers: Sequence[Layer], parameters: Mapping[str, Tensor], x: Tensor, loss: Callable[[Tensor], Tensor]
) -> tuple[Tensor, dict[str, Tensor | Product]]:
    """The losses of all runs, and the gradient of their sum by parameter.

    Autograd takes only the derivatives with respect to the outputs of Linear layers, or of the last layer if all
    activations are known. Their product with the layer's inputs is the gradient of the weights.
    """
    if all(isinstance(layer, Affine) or type(layer) in BACK for layer in layers):
        return _differentiate_known(layers, parameters, x, loss)
    inputs: list[Tensor] = []
    outputs: list[Tensor] = []
    for layer in layers:
        if isinstance(layer, Affine):
            inputs.append(x)
            x = layer(parameters, x)
            outputs.append(x if x.requires_grad else x.requires_grad_())
        else:
            x = layer(x)
    losses = loss(x)
    slopes = torch.autograd.grad(losses.sum(), outputs)
    gradients: dict[str, Tensor | Product] = {}
    for layer, seen, slope in zip(
        (layer for layer in layers if isinstance(layer, Affine)), inputs, slopes, strict=True
    ):
        gradients[layer.weight] = Product(seen.detach().expand(len(slope), -1, -1), slope)
        if layer.bias is not None:
            gradients[layer.bias] = slope.sum(1)
    return losses.detach(), gradients


def _differentiate_known(
    layers: Sequence[Layer], parameters: Mapping[str, Tensor], x: Tensor, loss: Callable[[Tensor], Tensor]
) -> tuple[Tensor, dict[str, Tensor | Product]]:
    """The same, going back through the layers without autograd, which costs more than the work on small layers."""
    with torch.no_grad():
        seen = [x]
        for layer in layers:
            seen.append(layer(parameters, seen[-1]) if isinstance(layer, Affine) else layer(seen[-1]))
    scores = seen[-1].detach().requires_grad_()
    with torch.enable_grad():
        losses = loss(scores)
        (slopes,) = torch.autograd.grad(losses.sum(), scores)
    first = next(place for place, layer in enumerate(layers) if isinstance(layer, Affine))
    gradients: dict[str, Tensor | Product] = {}
    with torch.no_grad():
        for place in range(len(layers) - 1, first - 1, -1):
            layer = layers[place]
            if not isinstance(layer, Affine):
                slopes = BACK[type(layer)](slopes, seen[place + 1])
                continue
            gradients[layer.weight] = Product(seen[place].expand(len(slopes), -1, -1), slopes)
            if layer.bias is not None:
                gradients[layer.bias] = slopes.sum(1)
            if place > first:
                slopes = layer.back(parameters, slopes)
    return losses.detach(), gradients


def _leaves(name: str, module: nn.Module) -> list[tuple[str, nn.Module]]:
    if type(module) is not nn.Sequential:
        return [(name, module)]
    prefix = f"{name}." if name else ""
    return [leaf for key, child in module._modules.items() if child for leaf in _leaves(f"{prefix}{key}", child)]


def _elementwise(module: nn.Module) -> Callable[[Tensor], Tensor]:
    own = copy.deepcopy(module)
    if hasattr(own, "inplace"):
        setattr(own, "inplace", False)  # noqa: B010 - what a layer gave is still needed
    return own


def _has_hooks(module: nn.Module) -> bool:
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )
