"""gradient: the gradient of the mean loss of some points with respect to all parameters of a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tiltmeter.modules.forward import Read, scores
from tiltmeter.modules.tangent.factors import Factor


def scores_of(model: nn.Module, x: Tensor, read: Read | None) -> Tensor:
    """Scores of all these points at once, (points, outputs)."""
    _, found = next(scores(model, x, read, len(x)))
    return found.reshape(len(x), -1)


def check_statistics(model: nn.Module) -> None:
    """Refuse a layer without stored statistics: it takes them from the batch, even in evaluation mode."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
            raise ValueError(
                f"Each point should have a score of its own in evaluation mode. Found that {name or 'the model'} "
                f"({type(module).__name__}) needs a batch even there: give it track_running_stats=True."
            )


def check_alone(model: nn.Module, few: Tensor, read: Read | None, found: Tensor) -> None:
    """Refuse a model in which the score of a point depends on the other points of the batch: it has no kernel of
    points.
    """
    check_statistics(model)
    if len(few) == 1:
        return
    beside = scores_of(model, few[1:], read)
    apart = (beside - found[1:]).abs().max()
    size = found.abs().max().clamp(min=torch.finfo(found.dtype).tiny)
    if apart > _tolerance(found) * size and apart > 8 * torch.finfo(found.dtype).eps * _terms(model, few, read):
        raise ValueError(
            "Each point should have a score of its own in evaluation mode. Found that scores change by "
            f"{float(apart):.3g} with the other points of the batch."
        )


def _terms(model: nn.Module, few: Tensor, read: Read | None) -> float:
    """The size of the terms of which a score is the sum, sum_i of |w_i d score / d w_i|.

    Where terms cancel, as in networks that start from pairs of opposite units, rounding errors have this size.
    """
    with torch.enable_grad():
        score = scores_of(model, few[:1], read).sum()
        used = [p for p in model.parameters() if p.requires_grad]
        if not score.requires_grad:
            return 0.0
        gradients = torch.autograd.grad(score, used, allow_unused=True)
    return sum(float((p.detach() * g).abs().sum()) for p, g in zip(used, gradients, strict=True) if g is not None)


def true_gradients(
    model: nn.Module, few: Tensor, read: Read | None, names: dict[str, nn.Parameter], weights: Tensor
) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of the outputs by name, (points, parameters); None for parameters that are not
    used.
    """
    with torch.enable_grad():
        found = scores_of(model, few, read)
        alone = (found @ weights.to(found)).unbind()
    if not found.requires_grad:
        return dict.fromkeys(names)
    rows: dict[str, list[Tensor | None]] = {name: [] for name in names}
    for one in alone:
        gradients = torch.autograd.grad(one, list(names.values()), retain_graph=True, allow_unused=True)
        for name, gradient in zip(names, gradients, strict=True):
            dense = gradient.to_dense() if gradient is not None and gradient.is_sparse else gradient
            if dense is not None and not torch.isfinite(dense).all():
                raise ValueError(f"Gradients should be finite. Found one that is not for parameter {name!r}.")
            rows[name].append(None if dense is None else dense.flatten().double())
    empty = {name: torch.zeros(names[name].numel(), dtype=torch.float64, device=few.device) for name in names}
    return {
        name: None if all(g is None for g in found) else torch.stack([empty[name] if g is None else g for g in found])
        for name, found in rows.items()
    }


def agrees(factor: Factor, true: Sequence[Tensor | None], weights: Tensor) -> bool:
    """Whether the inner products of a factor are those of the true gradients."""
    gram = factor.gram(factor)
    outputs, w = len(weights), weights.to(gram.device)
    points = len(gram) // outputs
    combined = torch.einsum("icjd,c,d->ij", gram.double().view(points, outputs, points, outputs), w, w)
    expected = torch.zeros_like(combined)
    for gradients in true:
        if gradients is not None:
            expected += gradients @ gradients.T
    largest = torch.maximum(expected.abs().max(), combined.abs().max())
    return bool((combined - expected).abs().max() <= _tolerance(gram) * largest)


def _tolerance(values: Tensor) -> float:
    """A tolerance far above rounding and far below a mistake."""
    return 1e-9 if values.dtype == torch.float64 else 1e-4


#: Losses of the points with these indices, one number each, as a function of the parameters of a module.
Losses = Callable[[Tensor], Tensor]


def gradient(losses: Losses, parameters: Sequence[nn.Parameter], places: Tensor, chunk: int = 256) -> Tensor:
    """Gradient of the mean loss of the points with these indices, all parameters in one vector.

    >>> slope = nn.Parameter(torch.tensor([3.0]))
    >>> x = torch.tensor([1.0, 2.0])
    >>> gradient(lambda places: 0.5 * (slope * x[places]) ** 2, [slope], torch.arange(2))
    tensor([7.5000])

    The gradients that the training stores in the parameters are not changed.
    """
    total = torch.zeros(count_of(parameters), dtype=parameters[0].dtype, device=parameters[0].device)
    with differentiable():
        for part in torch.split(places, chunk):
            found = torch.autograd.grad(losses(part).sum(), parameters, allow_unused=True)
            total += flat(found, parameters)
    return total / len(places)


def trained(module: nn.Module) -> list[nn.Parameter]:
    """The trainable parameters, or an error if there are none.

    >>> len(trained(nn.Linear(3, 2)))
    2

    Args:
        module: Network whose parameters are listed.
    """
    found = [p for p in module.parameters() if p.requires_grad and p.is_floating_point()]
    if not found:
        raise ValueError("Gradients need trainable parameters. Found none in the model.")
    if len({(p.dtype, p.device) for p in found}) > 1:
        raise ValueError("Gradients need parameters of one type on one device. Found several.")
    return found


@contextmanager
def differentiable() -> Iterator[None]:
    """Enable gradients, including second derivatives: the fused kernels of attention do not have them."""
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        yield


def flat(parts: Sequence[Tensor | None], parameters: Sequence[nn.Parameter]) -> Tensor:
    """One vector; a parameter that is not used (None) gives zeros."""
    filled = [torch.zeros_like(p) if part is None else part for part, p in zip(parts, parameters, strict=True)]
    return torch.cat([part.reshape(-1) for part in filled])


def count_of(parameters: Sequence[nn.Parameter]) -> int:
    """How many numbers these parameters hold.

    >>> count_of(list(nn.Linear(3, 2).parameters()))
    8

    Args:
        parameters: Parameters to count.
    """
    return sum(p.numel() for p in parameters)
