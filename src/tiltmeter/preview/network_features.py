"""Network features: the inputs of a network's last layer, where nothing else learns."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.modules.forward import bare, scores

#: Points that go through the network together.
CHUNK = 256


def frozen_features(model: Any, train: GroupedData, held_out: GroupedData) -> tuple[GroupedData, GroupedData] | None:
    """Both parts with the inputs of the last layer as points, if only that layer learns; None if others learn too."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}.")
    network = bare(model)
    learning = [name for name, weight in network.named_parameters() if weight.requires_grad]
    heads = [name for name, layer in network.named_modules() if isinstance(layer, nn.Linear)]
    if not learning or not heads:
        return None
    name = heads[-1]
    prefix = f"{name}." if name else ""
    if any(not one.startswith(prefix) for one in learning):
        return None
    if isinstance(network, nn.Linear):
        return train, held_out
    return _through(network, name, train), _through(network, name, held_out)


def _through(network: nn.Module, name: str, data: GroupedData) -> GroupedData:
    """The points as the last layer gets them, in evaluation mode."""
    seen: list[np.ndarray] = []

    def keep(_: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        seen.append(given[0].detach().flatten(1).cpu().numpy())

    points = data.tensor_points()[0]
    copied = deepcopy(network).eval()
    copied.get_submodule(name).register_forward_pre_hook(keep)
    with torch.no_grad():
        for _ in scores(copied, points, None, CHUNK):
            pass
    found = np.concatenate(seen)
    if len(found) != len(data):
        raise ValueError("The last layer of `model` should be used once for every point: pass its inputs as data.")
    return data.with_points(found)
