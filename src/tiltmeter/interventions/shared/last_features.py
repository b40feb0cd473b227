"""The last linear layer of a network, and what goes into it."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Points that go through the network together.
CHUNK = 1024


def last_layer(model: Any, law: str) -> Any:
    """The last Linear layer of a model."""
    import torch

    layers = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
    if not layers:
        raise TypeError(f"{law} acts on the last linear layer. Found a model without any.")
    return layers[-1]


def last_features(model: Any, data: Any, law: str) -> tuple[Any, np.ndarray]:
    """The last Linear layer of a model and its inputs (points, features) in evaluation mode; modes are put back.

    >>> import torch, tiltmeter as tm
    >>> data = tm.GroupedData(np.ones((60, 3)), [0, 1] * 30, ["a"] * 60)
    >>> layer, found = last_features(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1)), data, "DFR")
    >>> layer.out_features, found.shape
    (1, (60, 2))
    """
    import torch

    layer = last_layer(model, law)
    x = data.tensors(layer.weight.dtype)[0].to(layer.weight.device)
    seen: list[Any] = []
    hook = layer.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))  # noqa: ARG005
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            for module, _ in modes:
                module.training = False
            for start in range(0, len(x), CHUNK):
                model(x[start : start + CHUNK].clone())
    finally:
        hook.remove()
        for module, mode in modes:
            module.training = mode
    found = torch.cat(seen)
    if found.ndim != 2 or len(found) != len(data):
        raise TypeError(
            f"{law} fits the last linear layer anew, which should see every point once. Found inputs of shape "
            f"{tuple(found.shape)} for {len(data)} points."
        )
    return layer, found.double().cpu().numpy()
