"""Plan: which rule reaches which parameters of this model, settled by comparing products with true gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tiltmeter.passes.forward import Read, scores
from tiltmeter.tangent.capture import capture, check_finite, placed
from tiltmeter.tangent.factor import Factor
from tiltmeter.tangent.rules import RULES, reached
from tiltmeter.tangent.rules.generic import Written, mapped, one_by_one


class StrayLayer(Exception):
    """A layer that followed its rule on the first points and does not on later ones."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer


@dataclass(frozen=True)
class Plan:
    """How to get the factors of any points: layers by their rules, and the remaining parameters written out."""

    model: nn.Module
    read: Read | None
    trace: bool
    outputs: int
    layers: dict[nn.Module, str]
    rest: tuple[str, ...]
    written: Written
    bytes_per_point: int = 0

    @property
    def parts(self) -> list[str]:
        """What each factor belongs to, for messages."""
        return [*self.layers.values(), *([", ".join(self.rest[:3])] if self.rest else [])]

    def factors(self, x: Tensor, start: int = 0) -> list[Factor | None]:
        """One factor per layer, and one for the rest; None where a layer was not used. `start` is for messages."""
        x = placed(self.model, x)
        found: list[Factor | None] = []
        if self.layers:
            _, captured = capture(self.model, list(self.layers), x, self.read, start)
            for layer in self.layers:
                factor = None
                if layer in captured:
                    taps = captured[layer]
                    factor = None if taps is None else RULES[type(layer)](layer, *taps)
                    if factor is None:
                        raise StrayLayer(layer)
                found.append(factor)
        if self.rest:
            found.append(self.written(self.model, self.rest, x, self.read))
        if self.trace:
            found = [None if factor is None else factor.folded() for factor in found]
        return [None if factor is None else factor.settled() for factor in found]


def make_plan(model: nn.Module, x: Tensor, read: Read | None, trace: bool, distrusted: Sequence[nn.Module]) -> Plan:
    """Try every rule on a few of the points and keep those that are right."""
    names = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not names:
        raise ValueError("A tangent kernel needs parameters with requires_grad=True. Found none in the model.")
    few = placed(model, x[sorted({0, len(x) // 2, len(x) - 1})])
    found = _scores(model, few, read)
    if not torch.isfinite(found).all():
        for start in range(0, len(x), len(few)):
            check_finite(_scores(model, x[start : start + len(few)], read), start)
    outputs = found.shape[1]
    _check_alone(model, few, read, found)
    weights = torch.randn(outputs, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    true = _true_gradients(model, few, read, names, weights)
    if all(gradient is None for gradient in true.values()):
        raise ValueError("The scores should depend on a parameter with requires_grad=True. Found that none matters.")
    uses = Counter(id(p) for module in model.modules() for p in module._parameters.values() if p is not None)
    layers: dict[nn.Module, str] = {}
    for name, module in model.named_modules():
        own = reached(module)
        if own and module not in distrusted and all(uses[id(p)] == 1 for p in own):
            layers[module] = name or type(module).__name__
    ids = {id(p): name for name, p in names.items()}
    _, captured = capture(model, list(layers), few, read)
    trusted: dict[nn.Module, str] = {}
    for layer, name in layers.items():
        taps = captured.get(layer)
        factor = None if taps is None else RULES[type(layer)](layer, *taps)
        own_names = [ids[id(p)] for p in reached(layer)]
        if factor is not None and _agrees(factor.settled(), [true[n] for n in own_names], weights):
            trusted[layer] = name
    done = {id(p) for layer in trusted for p in reached(layer)}
    rest = tuple(name for name, p in names.items() if id(p) not in done)
    written = _choose(model, rest, few, read, true, weights)
    plan = Plan(model, read, trace, outputs, trusted, rest, written)
    factors = plan.factors(few)
    size = sum(factor.nbytes for factor in factors if factor is not None) // len(few)
    return Plan(model, read, trace, outputs, trusted, rest, written, size)


def _scores(model: nn.Module, x: Tensor, read: Read | None) -> Tensor:
    _, found = next(scores(model, x, read, len(x)))
    return found.reshape(len(x), -1)


def _check_alone(model: nn.Module, few: Tensor, read: Read | None, found: Tensor) -> None:
    """The score of a point must not depend on the points beside it, or there is no kernel of points."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
            raise ValueError(
                f"Each point should have a score of its own in evaluation mode. Found that {name or 'the model'} "
                f"({type(module).__name__}) needs a batch even there: give it track_running_stats=True."
            )
    if len(few) == 1:
        return
    beside = _scores(model, few[1:], read)
    apart = (beside - found[1:]).abs().max()
    if apart > _tolerance(found) * found.abs().max().clamp(min=torch.finfo(found.dtype).tiny):
        raise ValueError(
            "Each point should have a score of its own in evaluation mode. Found that scores change by "
            f"{float(apart):.3g} with the other points of the batch."
        )


def _true_gradients(
    model: nn.Module, few: Tensor, read: Read | None, names: dict[str, nn.Parameter], weights: Tensor
) -> dict[str, Tensor | None]:
    """Gradients of a weighted sum of the outputs by name, (points, parameters); None for parameters not used."""
    with torch.enable_grad():
        found = _scores(model, few, read)
        combined = found @ weights.to(found)
    if not combined.requires_grad:
        return dict.fromkeys(names)
    rows: dict[str, list[Tensor | None]] = {name: [] for name in names}
    for one in torch.eye(len(few)).to(combined):
        gradients = torch.autograd.grad(combined, list(names.values()), one, retain_graph=True, allow_unused=True)
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


def _agrees(factor: Factor, true: Sequence[Tensor | None], weights: Tensor) -> bool:
    """Whether products of a factor are those of the true gradients."""
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


def _choose(
    model: nn.Module,
    rest: tuple[str, ...],
    few: Tensor,
    read: Read | None,
    true: dict[str, Tensor | None],
    weights: Tensor,
) -> Written:
    """Vectorised gradients where they work and are right, else one by one."""
    if rest:
        try:
            if _agrees(mapped(model, rest, few, read), [true[name] for name in rest], weights):
                return mapped
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            pass  # an operation that cannot be vectorised, of which torch has many kinds of refusal
    return one_by_one


def _tolerance(values: Tensor) -> float:
    """Far above rounding, far below a mistake."""
    return 1e-9 if values.dtype == torch.float64 else 1e-4
