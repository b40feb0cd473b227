"""Neurons: the hidden units of a two-layer network without bias, sum_j u_j relu(v_j . x), and their clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from tiltmeter.modules.networks import TwoLayer


@dataclass(frozen=True)
class Neurons:
    """Weights `v` (units, inputs) into and `u` (units,) out of the hidden layer, in double precision."""

    v: np.ndarray
    u: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """norm(v_j) abs(u_j): the most that each unit can add to the output on the unit sphere."""
        return np.asarray(np.linalg.norm(self.v, axis=1) * np.abs(self.u))

    @property
    def share(self) -> np.ndarray:
        """The size of each unit as a share of the sum; equal shares if all are zero."""
        total = self.size.sum()
        return self.size / total if total > 0 else np.full(len(self.u), 1.0 / len(self.u))

    @property
    def direction(self) -> np.ndarray:
        """v_j as unit vectors; zero for a unit without weights."""
        length = np.linalg.norm(self.v, axis=1, keepdims=True)
        return np.asarray(np.divide(self.v, length, out=np.zeros_like(self.v), where=length > 0))


def neurons_of(module: nn.Module) -> Neurons:
    """The neurons of a `TwoLayer`, or of Sequential(Linear, ReLU, Linear) without biases and with one output.

    >>> from tiltmeter.modules.networks import mlp
    >>> neurons_of(mlp(3, (7,), 1, bias=False)).v.shape
    (7, 3)

    Args:
        module: Network to look at; it is not changed.
    """
    if isinstance(module, TwoLayer):
        return Neurons(*(part.detach().double().cpu().numpy() for part in (module.v, module.u)))
    layers = [layer for layer in module.modules() if not isinstance(layer, (nn.Sequential, nn.Flatten))]
    kinds = [type(layer).__name__ for layer in layers]
    if (
        isinstance(module, nn.Sequential)
        and kinds == ["Linear", "ReLU", "Linear"]
        and all(layer._parameters["bias"] is None for layer in (layers[0], layers[2]))
        and layers[2].out_features == 1
    ):
        first, last = (layer.weight.detach().double().cpu().numpy() for layer in (layers[0], layers[2]))  # type: ignore[operator]
        return Neurons(first, last[0])
    raise TypeError(
        "Early alignment needs a network of two layers: TwoLayer, or Sequential(Linear, ReLU, Linear) without biases "
        f"and with one output. Found {', '.join(kinds[:6]) or type(module).__name__}."
    )


def prominent(share: np.ndarray, cumulative: float) -> np.ndarray:
    """The indices of the fewest units that together hold this share of the total, largest first.

    >>> prominent(np.array([0.1, 0.6, 0.3]), 0.8).tolist()
    [1, 2]

    A cumulative share, unlike a threshold for each unit, does not depend on the number of units.
    """
    order = np.argsort(-share, kind="stable")
    enough = np.searchsorted(np.cumsum(share[order]), cumulative * share.sum() * (1.0 - 1e-12)) + 1
    return np.asarray(order[:enough])


def clusters(direction: np.ndarray, sign: np.ndarray, share: np.ndarray, degrees: float) -> np.ndarray:
    """The cluster number of each unit: a cluster has the units of one sign within an angle of its largest unit.

    >>> clusters(np.array([[1, 0], [0.0, 1], [1, 0]]), np.array([1, 1, -1]), np.array([0.5, 0.2, 0.3]), 5.0).tolist()
    [0, 2, 1]

    Clusters are numbered in the order in which they are found. The largest unit takes all units of its sign within the
    angle, then the largest of the remaining ones does the same, and so on.
    """
    found = np.full(len(share), -1)
    near = np.cos(np.radians(degrees))
    count = 0
    for leader in np.argsort(-share, kind="stable"):
        if found[leader] < 0:
            around = (found < 0) & (sign == sign[leader]) & (direction @ direction[leader] >= near)
            found[around] = count
            found[leader] = count
            count += 1
    return found


def merged(module: nn.Module, degrees: float, most: int | None = None, cumulative: float = 1.0) -> TwoLayer:
    """One neuron per cluster of neurons within this angle: V = sum abs(u_j) v_j / sqrt(norm of it), U = +-norm(V).

    >>> same = TwoLayer(torch.tensor([[1.0, 0], [2, 0], [0, 1]]), torch.tensor([1.0, 1, -1]))
    >>> small = merged(same, degrees=1.0)
    >>> small.v.shape, small(torch.eye(2)).tolist()
    (torch.Size([2, 2]), [3.0, -1.0])

    If all neurons of a cluster point in the same direction, the merged network has the same output. A small merged
    network does not mean that training condensed the network: any network merges at a large enough angle, so check the
    distance of outputs.

    Args:
        module: Network to look at; it is not changed.
        degrees: Angle within which neurons belong to a cluster.
        most: Keeps only so many of the largest clusters; None: all.
        cumulative: Keeps the fewest neurons that hold this share of the total size.
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

    >>> import tiltmeter_lab as lab
    >>> import torch, tiltmeter as tm
    >>> network = tm.modules.two_layer(3, 20)
    >>> lab.measures.merged_distance(network, network, torch.eye(3))
    0.0

    Args:
        module: The large network.
        small: The network that is compared with it, as `merged` gives it.
        x: Points on which both answer.
    """
    with torch.no_grad():
        one, other = (net(x.to(next(net.parameters()))).reshape(-1).double() for net in (module, small))
    difference, scale = (one - other).norm().item(), one.norm().item()
    return difference / scale if scale > 0 else float(difference > 0)
