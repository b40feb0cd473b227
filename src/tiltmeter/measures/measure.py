"""measure: evaluate one measure directly on a model and data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.catalogue import find
from tiltmeter.measures.snapshot import Measure, Snapshot
from tiltmeter.passes.forward import Read, bare
from tiltmeter.passes.untouched import untouched


def measure(
    chosen: Measure | str,
    model: nn.Module,
    data: GroupedData,
    loss: Any = None,
    *,
    decide: Callable[[Any], Any] | None = None,
    read: Read | None = None,
    chunk: int = 256,
    step: int | None = None,
) -> Mapping[str, xr.DataArray]:
    """Evaluate a measure (or the measure of this name, with its defaults) on a model and these points.

    >>> import numpy as np, torch
    >>> data = GroupedData(np.eye(4)[[0, 1, 2, 3] * 20], [0, 1, 1, 1] * 20, ["a", "a", "b", "b"] * 20)
    >>> from tiltmeter.measures.default_curves import error
    >>> sorted(measure(error, torch.nn.Linear(4, 2), data))
    ['error', 'error_se']

    The model, its gradients and the random streams are left unchanged.
    """
    taken = find(chosen)() if isinstance(chosen, str) else chosen
    inner = bare(model)
    with untouched(inner):
        return taken(snapshot_of(inner, data, loss, decide=decide, read=read, chunk=chunk, step=step))


def snapshot_of(
    model: nn.Module,
    data: GroupedData,
    loss: Any = None,
    *,
    decide: Callable[[Any], Any] | None = None,
    read: Read | None = None,
    chunk: int = 256,
    step: int | None = None,
) -> Snapshot:
    """Everything that a measure may use about a model now. Make it, and use it, inside `untouched(model)`."""
    return Answers(model, data, loss, decide, read, chunk, keep_scores=True).snapshot(model, step)
