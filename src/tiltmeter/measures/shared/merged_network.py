"""merged: a small network with one neuron for each (direction, sign) of a condensed network."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from tiltmeter.measures.shared.neurons import clusters, neurons_of, prominent
from tiltmeter.networks.two_layer import TwoLayer


def merged(module: nn.Module, degrees: float, most: int | None = None, cumulative: float = 1.0) -> TwoLayer:
    """One neuron per cluster of neurons within this angle: V = sum abs(u_j) v_j / sqrt(norm of it), U = +-norm(V).

    >>> same = TwoLayer(torch.tensor([[1.0, 0], [2, 0], [0, 1]]), torch.tensor([1.0, 1, -1]))
    >>> small = merged(same, degrees=1.0)
    >>> small.v.shape, small(torch.eye(2)).tolist()
    (torch.Size([2, 2]), [3.0, -1.0])

    If all neurons of a cluster point in the same direction, the merged network has the same output. `most` keeps only
    the largest clusters; `cumulative` keeps the fewest neurons that hold this share of the total size. A small merged
    network does not mean that training condensed the network: any network merges at a large enough angle, so check the
    distance of outputs.
    """
    if not 0 <= degrees <= 180:
        raise ValueError(f"`degrees` should be an angle from 0 to 180. Found degrees = {degrees}.")
    found = neurons_of(module)
    kept = prominent(found.share, cumulative)
    v, u, share = found.v[kept], found.u[kept], found.share[kept]
    member = clusters(found.direction[kept], np.sign(u), share, degrees)
    total = np.bincount(member, share)
    rows = []
    for cluster in np.argsort(-total, kind="stable")[:most]:
        inside = member == cluster
        pulled = (np.abs(u[inside])[:, None] * v[inside]).sum(0)
        length = np.sqrt(np.linalg.norm(pulled))
        direction = pulled / length if length > 0 else pulled
        rows.append((direction, np.sign(u[inside][0]) * length))
    like = next(module.parameters())
    weights = (torch.as_tensor(np.stack([row[part] for row in rows]), dtype=like.dtype) for part in (0, 1))
    return TwoLayer(*(weight.to(like.device) for weight in weights))


def merged_distance(module: nn.Module, small: nn.Module, x: torch.Tensor) -> float:
    """Root mean square of the difference of outputs, relative to the large network's outputs; 0 if both are always
    zero.
    """
    with torch.no_grad():
        one, other = (net(x.to(next(net.parameters()).dtype)).reshape(-1).double() for net in (module, small))
    difference, scale = (one - other).norm().item(), one.norm().item()
    return difference / scale if scale > 0 else float(difference > 0)
