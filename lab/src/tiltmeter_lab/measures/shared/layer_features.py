"""layer_features: the input of a layer for any points, without changing the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.measures.seen_model import SeenModel


def layer_features(seen: SeenModel, x: Any, layer: str | None = None) -> np.ndarray:
    """The input of the named layer, one flat row per point; by default of the last Linear layer that is called.

    >>> import tiltmeter as tm
    >>> data = tm.GroupedData(np.ones((60, 3)), np.arange(60) % 2, "label")
    >>> model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    >>> layer_features(tm.Probe(model, data).snapshot().model, data.x).shape
    (60, 5)

    The names are those of `named_modules`. The input of the last layer is the representation from which the model
    decides.
    """
    modules = dict(seen.module.named_modules())
    if layer is not None and layer not in modules:
        raise KeyError(f"No layer {layer!r}. There are: {', '.join(name for name in modules if name)}.")
    watched = [m for m in modules.values() if isinstance(m, nn.Linear)] if layer is None else [modules[layer]]
    # The output layer of a transformer's feed-forward block is a Linear too; the last one *called* is the head.
    latest: list[Tensor] = []
    kept: list[np.ndarray] = []

    def keep(_: nn.Module, given: tuple[Any, ...]) -> None:
        if given and isinstance(given[0], Tensor):
            latest[:] = [given[0]]

    def close(_: nn.Module, given: tuple[Any, ...], __: Any) -> None:
        if not latest:
            return
        points = len(given[0])
        rows = latest.pop().detach()
        if len(rows) != points:
            raise ValueError(
                f"A layer should see one row per point. Found {len(rows)} rows for {points} points: name another layer."
            )
        kept.append(rows.reshape(points, -1).double().cpu().numpy())

    handles = [module.register_forward_pre_hook(keep) for module in watched]
    handles.append(seen.module.register_forward_hook(close))
    try:
        with torch.no_grad():
            seen.scores(x)
    finally:
        for handle in handles:
            handle.remove()
    if not kept:
        raise ValueError("The model calls no Linear layer: name the layer whose input should be used.")
    return np.concatenate(kept)
