"""Forward: the scores of a model on many points, in chunks."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, overload

import torch
from torch import Tensor, nn

from tiltmeter.data.nested import Nested, Streamed

#: Maximum length of a model's description, in characters.
TEXT = 4000


def describe(model: nn.Module) -> dict[str, Any]:
    """A short text that describes the model, for the Origin."""
    count = sum(parameter.numel() for parameter in model.parameters())
    return {"class": type(model).__name__, "parameters": count, "text": repr(model)[:TEXT]}


#: Points as a tensor, in parts, or read from a stream.
Points = Tensor | Nested | Streamed
#: Extracts the scores from the model's output.
Read = Callable[[Any], Tensor]


def bare(model: nn.Module) -> nn.Module:
    """The module inside wrappers that compile or synchronise: the same weights, without side effects."""
    while True:
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod  # type: ignore[assignment]
        elif isinstance(model, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
            model = model.module
        else:
            return model


def scores(model: nn.Module, x: Points, read: Read | None, chunk: int) -> Iterator[tuple[slice, Tensor]]:
    """Scores of the points, in chunks on the model's device: shape (points,) or (points, outputs)."""
    kind = _kind(model)  # once for all chunks: finding it takes as long as a small layer
    if isinstance(x, Tensor) and _fits(x, *kind):
        # The usual case, with as few operations for each chunk as possible.
        count = x.shape[0]
        for start in range(0, count, chunk):
            end = min(start + chunk, count)
            # A copy: a forward pass may work in place, and these points are used again.
            yield slice(start, end), flat_scores(model(x[start:end].clone()), end - start, read)
        return
    for start, points in _chunks(x, chunk):
        part = private(_converted(points, *kind), points)
        yield slice(start, start + len(part)), flat_scores(answer(model, part), len(part), read)


def _fits(x: Tensor, place: torch.device | None, floating: torch.dtype | None) -> bool:
    """Whether nothing has to be converted."""
    return (place is None or x.device == place) and (floating in (None, x.dtype) or not x.is_floating_point())


def _chunks(x: Points, size: int) -> Iterator[tuple[int, Any]]:
    if isinstance(x, Streamed):
        yield from x.chunks(size)
    else:
        yield from ((start, x[start : start + size]) for start in range(0, len(x), size))


def private(x: Any, given: Any = None) -> Any:
    """The points for one forward pass, which may work in place: a copy, unless they were already copied from those
    `given`."""
    if isinstance(x, Nested):
        kept = _tensors(given) if isinstance(given, Nested) else ()
        return x.each(lambda part: part if kept and all(part is not one for one in kept) else part.clone())
    return x if given is not None and x is not given else x.clone()


def _tensors(points: Nested) -> tuple[Any, ...]:
    return tuple(points.parts.values() if isinstance(points.parts, dict) else points.parts)


def answer(model: nn.Module, x: Any) -> Any:
    """What the model returns for a batch; parts of nested points go by name or in order if `forward` takes them so.

    >>> class Sum(nn.Module):
    ...     def forward(self, tokens, mask):
    ...         return (tokens * mask).sum(1)
    >>> answer(Sum(), Nested({"mask": torch.ones(2, 3), "tokens": torch.ones(2, 3)})).tolist()
    [3.0, 3.0]
    """
    if not isinstance(x, Nested):
        return model(x)
    parts = x.parts
    try:
        takes = inspect.signature(model.forward)
        takes.bind(**parts) if isinstance(parts, dict) else takes.bind(*parts)
    except TypeError:
        return model(parts)
    return model(**parts) if isinstance(parts, dict) else model(*parts)


class AtPlaces(nn.Module):
    """A network of points in parts, asked by the places of points: whatever takes points of one array takes it so.

    >>> sums = AtPlaces(nn.Bilinear(2, 3, 1), Nested((torch.ones(4, 2), torch.ones(4, 3))))
    >>> sums(torch.tensor([[0], [3]])).shape
    torch.Size([2, 1])
    """

    def __init__(self, model: nn.Module, points: Nested) -> None:
        super().__init__()
        self.model, self._points = model, points

    def forward(self, places: Tensor) -> Any:
        at = places[..., 0]
        return answer(self.model, like_weights(self.model, self._points.each(lambda part: part[at.to(part.device)])))

    def __deepcopy__(self, known: dict[int, Any]) -> AtPlaces:
        """The points are not copied: a network is copied often, and they may be large."""
        return AtPlaces(copy.deepcopy(self.model, known), self._points).train(self.training)


@overload
def like_weights(model: nn.Module, x: Tensor) -> Tensor: ...


@overload
def like_weights(model: nn.Module, x: Nested) -> Nested: ...


def like_weights(model: nn.Module, x: Any) -> Any:
    """The points on the device of the model; numbers (not tokens) are converted to the precision of its weights."""
    return _converted(x, *_kind(model))


def _kind(model: nn.Module) -> tuple[torch.device | None, torch.dtype | None]:
    """The device of the model's weights, and the precision of those that are numbers."""
    place = None
    for parameter in model.parameters():
        place = parameter.device if place is None else place
        if parameter.is_floating_point():
            return place, parameter.dtype
    buffer = next(model.buffers(), None) if place is None else None
    return place if buffer is None else buffer.device, None


def _converted(x: Any, place: torch.device | None, floating: torch.dtype | None) -> Any:
    if isinstance(x, Nested):
        return x.each(lambda part: _converted(part, place, floating))
    if place is not None:
        x = x.to(place)
    return x.to(floating) if floating is not None and x.is_floating_point() else x


def flat_scores(output: Any, points: int, read: Read | None) -> Tensor:
    """The scores from a model's output, one number or one row per point."""
    found = output if read is None else read(output)
    if not isinstance(found, Tensor):
        what, fix = ("`model`", "Pass read=, as") if read is None else ("`read`", "As in")
        raise TypeError(
            f"{what} should return a tensor of scores. Found {type(found).__name__}. {fix} "
            "read=lambda output: output[0]."
        )
    shape: tuple[int, ...] = found.shape
    if len(shape) == 2 and shape[1] == 1:
        found, shape = found[:, 0], shape[:1]
    if len(shape) not in (1, 2) or shape[0] != points:
        raise ValueError(
            f"Scores should have one number or one row per point. Found shape {tuple(found.shape)} for {points} "
            "points: pass read= to choose among the outputs."
        )
    return found if found.dtype in (torch.float32, torch.float64) else found.float()
