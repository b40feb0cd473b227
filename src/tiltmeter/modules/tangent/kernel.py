"""Kernel: tangent kernels K(x, x') = <grad f(x), grad f(x')> of any module, and its initial scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.modules.forward import Read, bare, scores
from tiltmeter.modules.tangent.kernel_blocks import Crossed, Tell, fill
from tiltmeter.modules.tangent.memory import check_memory, kernel_memory
from tiltmeter.modules.tangent.plan import Plan, StrayLayer, make_plan
from tiltmeter.modules.untouched import untouched

__all__ = ["check_memory", "initial_scores", "kernel_memory", "kernels", "tangent_kernel"]

#: Which products of outputs a kernel contains: those of all pairs of outputs, or the mean over equal outputs.
Outputs = Literal["full", "trace"]

Work = TypeVar("Work")


class _How(NamedTuple):
    """What a kernel holds of several outputs, and how it is computed."""

    outputs: Outputs
    read: Read | None
    chunk: int
    dtype: np.typing.DTypeLike


def tangent_kernel(
    model: nn.Module,
    x: Tensor,
    other: Tensor | None = None,
    *,
    outputs: Outputs = "full",
    read: Read | None = None,
    chunk: int = 256,
    dtype: np.typing.DTypeLike = np.float64,
) -> np.ndarray:
    """K(x, other), or K(x, x) without `other`: how much a gradient step on one point changes the score of another.

    >>> model = nn.Linear(2, 3).double()
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 2.0]])
    >>> tangent_kernel(model, x).shape, tangent_kernel(model, x, outputs="trace")
    ((6, 6), array([[2., 2.],
           [2., 6.]]))

    K(x, x') = <grad f(x), grad f(x')> over the parameters with requires_grad=True, in evaluation mode; the model is not
    changed. With one output the shape is (n, m). With C outputs, `outputs="full"` gives (n C, m C), row point * C +
    output. `outputs="trace"` gives the cheaper (n, m) mean over c of <grad f_c(x), grad f_c(x')>; it is exact if
    different outputs do not interact, and an approximation otherwise.

    Linear, convolution, normalisation and embedding layers use products layer by layer; all other parameters use
    explicit gradients for a block of points. The memory is at most `kernel_memory`. For a model in float32, products
    are computed in float32 and summed over layers in float64, with a precision of 1e-5; for more pass `model.double()`.

    What it does not mean: it is a local quantity. It says how the scores change from these weights, not where training
    ends.

    Args:
        model: Network to look at; it is not changed.
        x: Points of the rows.
        other: Points of the columns; None: the same points.
        outputs: With several outputs, "full" for all pairs, "trace" for the mean over outputs.
        read: Finds the scores in what the model returns; None: the model returns scores.
        chunk: Points that pass through the model at once; fewer need less memory.
        dtype: Type of the result.
    """
    found = _compute(model, x, other, other is None, _How(outputs, read, chunk, dtype))[0]
    return found if other is None else found.T


def kernels(
    model: nn.Module,
    x_train: Tensor,
    x_held_out: Tensor,
    *,
    outputs: Outputs = "full",
    read: Read | None = None,
    chunk: int = 256,
    dtype: np.typing.DTypeLike = np.float64,
    tell: Tell | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """K(train, train) and K(held_out, train) from the same passes over the model; see `tangent_kernel`.

    >>> line = nn.Linear(1, 1)
    >>> kernels(line, torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0]]))
    (array([[2., 3.],
           [3., 5.]]), array([[4., 7.]]))

    `tell` is called with the amount of work done, out of 2 n (n + m): pairs of points, and the same amount for
    gradients.
    """
    train, held_out = _compute(model, x_train, x_held_out, True, _How(outputs, read, chunk, dtype), tell)
    return train, held_out


def initial_scores(model: nn.Module, x: Tensor, *, read: Read | None = None, chunk: int = 256) -> np.ndarray:
    """Scores in evaluation mode, float64 (points, outputs): the start of a forecast.

    >>> initial_scores(nn.Identity(), torch.tensor([[0.5], [2.0]]))
    array([[0.5],
           [2. ]])
    """
    model = bare(model)
    _check_points(x, "x")
    with untouched(model):
        found = [part.double().cpu().numpy() for _, part in scores(model, x, read, chunk)]
    together: np.ndarray[Any, Any] = np.concatenate(found).reshape(len(x), -1)
    bad = ~np.isfinite(together).all(1)
    if bad.any():
        raise ValueError(f"Scores should be finite. Found {together[bad][0]} at point {int(bad.argmax())}.")
    return together


def _compute(
    model: nn.Module,
    x: Tensor,
    other: Tensor | None,
    symmetric: bool,
    how: _How,
    tell: Tell | None = None,
) -> list[np.ndarray]:
    """K(x, x) if `symmetric`, then K(other, x) unless `other` is None."""
    if how.outputs not in ("full", "trace"):
        raise ValueError(f'`outputs` should be "full" or "trace". Found outputs = {how.outputs!r}.')
    if how.chunk < 1:
        raise ValueError(f"`chunk` should be at least 1. Found chunk = {how.chunk}.")
    if np.dtype(how.dtype) not in (np.float32, np.float64):
        raise ValueError(f"`dtype` should be float32 or float64. Found dtype = {np.dtype(how.dtype)}.")
    _check_points(x, "x")
    if other is not None:
        _check_points(other, "other")

    def filled(plan: Plan) -> list[np.ndarray]:
        side = 1 if plan.trace else plan.outputs
        fixed = 0 if other is None else len(other)
        check_memory(
            len(x), len(x) * symmetric + fixed, plan.outputs, outputs=how.outputs, dtype=how.dtype, fixed=fixed
        )
        own = np.zeros((len(x) * side, len(x) * side), how.dtype) if symmetric else None
        crossed = None if other is None else Crossed(other, np.zeros((fixed * side, len(x) * side), how.dtype))
        fill(plan, x, own, crossed, how.chunk, tell)
        found = [target for target in (own, None if crossed is None else crossed.target) if target is not None]
        if not any(np.count_nonzero(target) for target in found):
            raise ValueError(
                "The scores should change with the trained parameters. Found a constant output: every gradient is "
                f"zero ({', '.join(plan.parts[:3])})."
            )
        return found

    # Testing to which point a gradient belongs needs several points.
    tried = x if len(x) > 2 or other is None else torch.cat([x, other])
    return by_plan(bare(model), tried, how.read, how.outputs == "trace", filled)


def by_plan(model: nn.Module, x: Tensor, read: Read | None, trace: bool, work: Callable[[Plan], Work]) -> Work:
    """What is computed by the plan of a model; again by another plan if a layer leaves its rule on the way."""
    distrusted: list[nn.Module] = []
    with untouched(model), plain_attention():
        while True:
            try:
                return work(make_plan(model, x, read, trace, distrusted))
            except StrayLayer as stray:
                distrusted.append(stray.layer)


def _check_points(x: Any, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"`{name}` should be a tensor of points. Found {type(x).__name__}.")
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"`{name}` should hold at least one point. Found shape {tuple(x.shape)}.")


class plain_attention:
    """Disables the fused inference path of attention, which has no gradients and which torch may use if none seem
    needed.
    """

    def __enter__(self) -> None:
        self.before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch.backends.mha.set_fastpath_enabled(self.before)
