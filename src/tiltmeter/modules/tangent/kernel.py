"""Kernel: tangent kernels K(x, x') = <grad f(x), grad f(x')> of any module, and its initial scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

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
    if other is None:
        return _compute(model, x, (), True, outputs, read, chunk, dtype)[0][0]
    return _compute(model, x, (other,), False, outputs, read, chunk, dtype)[0][0].T


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
    (train, held_out), _ = _compute(model, x_train, (x_held_out,), True, outputs, read, chunk, dtype, tell)
    return train, held_out


def planned_kernels(
    model: nn.Module,
    x: Tensor,
    others: Sequence[Tensor],
    *,
    outputs: Outputs,
    read: Read | None,
    plan: Plan | None = None,
    tell: Tell | None = None,
) -> tuple[list[np.ndarray], Plan]:
    """K(x, x) and K(other, x) for each of the others, and the plan by which they were computed.

    With the plan of a network of which `model` is a copy with other weights, nothing is tried and checked again.
    """
    given = None if plan is None else plan.on(bare(model))
    return _compute(model, x, others, True, outputs, read, 256, np.float64, tell, given)


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
    others: Sequence[Tensor],
    symmetric: bool,
    outputs: Outputs,
    read: Read | None,
    chunk: int,
    dtype: np.typing.DTypeLike,
    tell: Tell | None = None,
    plan: Plan | None = None,
) -> tuple[list[np.ndarray], Plan]:
    """K(x, x) if `symmetric`, then K(other, x) for each of the others; and the plan, made here unless given."""
    if outputs not in ("full", "trace"):
        raise ValueError(f'`outputs` should be "full" or "trace". Found outputs = {outputs!r}.')
    if chunk < 1:
        raise ValueError(f"`chunk` should be at least 1. Found chunk = {chunk}.")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"`dtype` should be float32 or float64. Found dtype = {np.dtype(dtype)}.")
    for name, points in (("x", x), *(("other", other) for other in others)):
        _check_points(points, name)
    model = bare(model)
    # Testing to which point a gradient belongs needs several points.
    tried = x if len(x) > 2 else torch.cat([x, *others])
    distrusted: list[nn.Module] = []
    with untouched(model), plain_attention():
        while True:
            plan = plan or make_plan(model, tried, read, outputs == "trace", distrusted)
            side = 1 if plan.trace else plan.outputs
            fixed = sum(len(other) for other in others)
            check_memory(len(x), len(x) * symmetric + fixed, plan.outputs, outputs=outputs, dtype=dtype, fixed=fixed)
            found = [np.zeros((len(p) * side, len(x) * side), dtype) for p in ([x] if symmetric else []) + [*others]]
            crossed = [Crossed(p, target) for p, target in zip(others, found[symmetric:], strict=True)]
            try:
                fill(plan, x, found[0] if symmetric else None, crossed, chunk, tell)
            except StrayLayer as stray:
                distrusted.append(stray.layer)
                plan = None
            else:
                break
    check_moves(found, plan)
    return found, plan


def _check_points(x: Any, name: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"`{name}` should be a tensor of points. Found {type(x).__name__}.")
    if x.ndim == 0 or len(x) == 0:
        raise ValueError(f"`{name}` should hold at least one point. Found shape {tuple(x.shape)}.")


def check_moves(found: Sequence[np.ndarray], plan: Plan) -> None:
    """Refuse kernels that are zero everywhere."""
    if not any(np.count_nonzero(target) for target in found):
        raise ValueError(
            "The scores should change with the trained parameters. Found a constant output: every gradient is zero "
            f"({', '.join(plan.parts[:3])})."
        )


class plain_attention:
    """Disables the fused inference path of attention, which has no gradients and which torch may use if none seem
    needed.
    """

    def __enter__(self) -> None:
        self.before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch.backends.mha.set_fastpath_enabled(self.before)
