"""normalisation: out = weight * normalised + bias; there are few parameters, so gradients are explicit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tiltmeter.tangent.factors.rows import Rows


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
