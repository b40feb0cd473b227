"""Rules: the gradients of each type of layer as factors; parameters of any other type go point by point."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from tiltmeter.modules.forward import Read, flat_scores, scores
from tiltmeter.modules.tangent.factors import Factor, Lookup, Rows, Tokens


def linear(module: nn.Linear, inputs: Tensor, delta: Tensor) -> Tokens:
    """(a . a' + 1) (delta . delta'), summed over pairs of positions if a point has several."""
    points, outputs = delta.shape[:2]
    a = inputs.reshape(points, -1, module.in_features)
    return Tokens(
        trained_inputs(a, module.weight, module.bias), delta.reshape(points, outputs, -1, module.out_features)
    )


def trained_inputs(a: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The inputs (points, positions, inputs) that multiply trainable parameters; a bias multiplies a constant 1."""
    parts = [a] if weight.requires_grad else []
    if bias is not None and bias.requires_grad:
        parts.append(a.new_ones(*a.shape[:2], 1))
    return torch.cat(parts, 2) if len(parts) > 1 else parts[0]


def convolution(module: nn.Conv1d | nn.Conv2d, inputs: Tensor, delta: Tensor) -> Tokens | Rows:
    """Like `linear`, with patches as inputs; for groups of channels, explicit gradients."""
    a, delta = patches(module, inputs), delta.flatten(3).transpose(2, 3)
    if module.groups == 1:
        return Tokens(trained_inputs(a, module.weight, module.bias), delta)
    parts = []
    if module.weight.requires_grad:
        mine = a.reshape(*a.shape[:2], module.groups, -1)
        theirs = delta.reshape(*delta.shape[:3], module.groups, -1)
        parts.append(torch.einsum("ptgi,pctgu->pcgui", mine, theirs).flatten(2))
    if module.bias is not None and module.bias.requires_grad:
        parts.append(delta.sum(2))
    return Rows(torch.cat(parts, 2))


def patches(module: nn.Conv1d | nn.Conv2d, inputs: Tensor) -> Tensor:
    """The input of the kernel at each position, (points, positions, channels x kernel)."""
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    around = F.pad(inputs, module._reversed_padding_repeated_twice, mode=mode)
    if isinstance(module, nn.Conv1d):
        size, dilation, stride = (1, *module.kernel_size), (1, *module.dilation), (1, *module.stride)
        return F.unfold(around[:, :, None], size, dilation, stride=stride).transpose(1, 2)
    return F.unfold(around, module.kernel_size, module.dilation, stride=module.stride).transpose(1, 2)


def embedding(module: nn.Embedding, inputs: Tensor, delta: Tensor) -> Lookup:
    """1[token = token'] (delta . delta'), summed over pairs of positions; the padding token is not trained."""
    points, outputs = delta.shape[:2]
    lines = inputs.reshape(points, -1)
    delta = delta.reshape(points, outputs, -1, module.embedding_dim)
    if module.padding_idx is not None:
        delta = delta * (lines != module.padding_idx)[:, None, :, None]
    return Lookup(lines, delta)


def embedding_bag(module: nn.EmbeddingBag, inputs: Tensor, delta: Tensor) -> Lookup | None:
    """Like `embedding`: every token of a bag gets the bag's gradient, divided by their number for means."""
    if inputs.ndim != 2 or module.mode not in ("sum", "mean"):
        return None
    counted = inputs != (-1 if module.padding_idx is None else module.padding_idx)
    share = counted.to(delta.dtype)
    if module.mode == "mean":
        share = share / share.sum(1, keepdim=True).clamp(min=1.0)
    return Lookup(inputs, delta[:, :, None] * share[:, None, :, None])


#: (model, names of parameters, points, read) -> rows of gradients
Written = Callable[[nn.Module, Sequence[str], Tensor, "Read | None"], Rows]


def mapped(model: nn.Module, names: Sequence[str], x: Tensor, read: Read | None) -> Rows:
    """All points at once by vectorisation; some operations do not allow it."""
    values = {name: model.get_parameter(name).detach() for name in names}

    def outputs(values: dict[str, Tensor], point: Tensor) -> Tensor:
        return flat_scores(functional_call(model, values, (point[None].clone(),)), 1, read).reshape(-1)

    # Fused attention cannot be vectorised; torch's warnings about other operations concern speed.
    with sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        found = vmap(jacrev(outputs), (None, 0))(values, x)
    return Rows(torch.cat([found[name].flatten(2).detach() for name in names], 2))


def one_by_one(model: nn.Module, names: Sequence[str], x: Tensor, read: Read | None) -> Rows:
    """One backward pass per point and output."""
    parameters = [model.get_parameter(name) for name in names]
    rows = []
    for point in x[:, None]:
        with torch.enable_grad():
            _, found = next(scores(model, point, read, 1))
            outputs = found.reshape(-1).unbind()
        for output in outputs:
            gradients = (
                torch.autograd.grad(output, parameters, retain_graph=True, allow_unused=True)
                if found.requires_grad
                else [None] * len(parameters)
            )
            rows.append(torch.cat([_dense(g, p).flatten() for g, p in zip(gradients, parameters, strict=True)]))
    return Rows(torch.stack(rows).view(len(x), -1, len(rows[0])))


def _dense(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(parameter)
    return gradient.to_dense() if gradient.is_sparse else gradient


def normalisation(module: nn.Module, inputs: Tensor, delta: Tensor) -> Rows | None:
    """Gradients (sum of delta * normalised, sum of delta) over the positions that share a weight."""
    normalised = _normalised(module, inputs)
    if normalised is None:
        return None
    points, outputs = delta.shape[:2]
    if isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
        # Weights vary along the last dimensions and are shared by all positions along the others.
        shape = (-1, *module.normalized_shape)
        normalised, delta = normalised.reshape(points, 1, *shape), delta.reshape(points, outputs, *shape)
        sums: tuple[int, ...] = (2,)
    else:
        normalised, sums = normalised[:, None], tuple(range(3, delta.ndim))
    parts = []
    for name, gradients in (("weight", delta * normalised), ("bias", delta)):
        parameter = module._parameters.get(name)
        if parameter is not None and parameter.requires_grad:
            parts.append((gradients.sum(sums) if sums else gradients).flatten(2))
    return Rows(torch.cat(parts, 2))


def _normalised(module: nn.Module, inputs: Tensor) -> Tensor | None:
    if isinstance(module, nn.LayerNorm):
        return F.layer_norm(inputs, module.normalized_shape, None, None, module.eps)
    if isinstance(module, nn.RMSNorm):
        return F.rms_norm(inputs, module.normalized_shape, None, module.eps)
    if isinstance(module, nn.GroupNorm):
        return F.group_norm(inputs, module.num_groups, None, None, module.eps)
    assert isinstance(module, (nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm))
    if module.running_mean is not None and module.running_var is not None:
        return F.batch_norm(inputs, module.running_mean, module.running_var, None, None, False, 0.0, module.eps)
    if isinstance(module, nn.modules.instancenorm._InstanceNorm):
        return F.instance_norm(inputs, eps=module.eps)
    return None


#: (module, its input, gradients of every score with respect to its output: (points, outputs, ...)) -> factor;
#: None if the rule does not apply.
Rule = Callable[..., Factor | None]

#: By exact type: a subclass may compute something else.
RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: linear,
    nn.Conv1d: convolution,
    nn.Conv2d: convolution,
    nn.BatchNorm1d: normalisation,
    nn.BatchNorm2d: normalisation,
    nn.BatchNorm3d: normalisation,
    nn.LayerNorm: normalisation,
    nn.RMSNorm: normalisation,
    nn.GroupNorm: normalisation,
    nn.InstanceNorm1d: normalisation,
    nn.InstanceNorm2d: normalisation,
    nn.Embedding: embedding,
    nn.EmbeddingBag: embedding_bag,
}


def reached(module: nn.Module) -> list[nn.Parameter]:
    """The trainable parameters that the rule of this layer covers."""
    if type(module) not in RULES:
        return []
    return [parameter for parameter in module.parameters(recurse=False) if parameter.requires_grad]
