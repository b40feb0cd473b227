"""Plan: which rule applies to which parameters of a model, decided by comparing inner products with true gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from tiltmeter.modules.forward import Read
from tiltmeter.modules.tangent.factors import Factor
from tiltmeter.modules.tangent.gradient import agrees, check_alone, scores_of, true_gradients
from tiltmeter.modules.tangent.layer_capture import capture, check_finite, placed
from tiltmeter.modules.tangent.rules import RULES, Written, mapped, one_by_one, reached


class StrayLayer(Exception):
    """A layer that followed its rule on the first points but not on later ones."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer


@dataclass(frozen=True)
class Plan:
    """How to get the factors of any points: layers by their rules, and explicit gradients for the remaining parameters.

    `held` is the memory of the factors of one point in bytes; `passing` is the memory that a pass needs until they are
    computed.
    """

    model: nn.Module
    read: Read | None
    trace: bool
    outputs: int
    layers: dict[nn.Module, str]
    rest: tuple[str, ...]
    written: Written
    held: int = 0
    passing: int = 0

    @property
    def parts(self) -> list[str]:
        """The layer or parameters of each factor, for messages."""
        return [*self.layers.values(), *([", ".join(self.rest[:3])] if self.rest else [])]

    def factors(self, x: Tensor, start: int = 0) -> list[Factor | None]:
        """One factor per layer, and one for the rest; None if a layer was not used. `start` is for messages."""
        x = placed(self.model, x)
        found: list[Factor | None] = []
        if self.layers:
            _, captured = capture(self.model, list(self.layers), x, self.read, start)
            for layer in self.layers:
                # Removed one by one, so that the input of a layer is freed as soon as its factor is computed.
                found.append(self._settled(layer, captured.pop(layer)) if layer in captured else None)
        if self.rest:
            rows = self.written(self.model, self.rest, x, self.read)
            found.append(rows.folded() if self.trace else rows)
        return found

    def _settled(self, layer: nn.Module, taps: tuple[Tensor, Tensor] | None) -> Factor:
        factor = _by_rule(layer, taps)
        if factor is None:
            raise StrayLayer(layer)
        return (factor.folded() if self.trace else factor).settled()


def make_plan(model: nn.Module, x: Tensor, read: Read | None, trace: bool, distrusted: Sequence[nn.Module]) -> Plan:
    """Try every rule on a few of the points and keep those that are correct."""
    names = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not names:
        raise ValueError("A tangent kernel needs parameters with requires_grad=True. Found none in the model.")
    few = placed(model, x[sorted({0, len(x) // 2, len(x) - 1})])
    found = scores_of(model, few, read)
    if not torch.isfinite(found).all():
        for start in range(0, len(x), len(few)):
            check_finite(scores_of(model, x[start : start + len(few)], read), start)
    check_alone(model, few, read, found)
    # One random sum over outputs is enough to detect a rule that is wrong in any of them.
    weights = torch.randn(found.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    true = true_gradients(model, few, read, names, weights)
    if all(gradient is None for gradient in true.values()):
        raise ValueError("The scores should depend on a parameter with requires_grad=True. Found that none matters.")
    layers = _candidates(model, distrusted)
    _, captured = capture(model, list(layers), few, read)
    passing = sum(tap.nbytes for taps in captured.values() for tap in taps or ())
    trusted: dict[nn.Module, str] = {}
    called = {id(p): name for name, p in names.items()}
    for layer, name in layers.items():
        factor = _by_rule(layer, captured.get(layer))
        expected = [true[called[id(p)]] for p in reached(layer)]
        if factor is not None and agrees(factor.settled(), expected, weights):
            trusted[layer] = name
            passing = max(passing, factor.nbytes)
    done = {id(p) for layer in trusted for p in reached(layer)}
    rest = tuple(name for name, p in names.items() if id(p) not in done)
    plan = Plan(model, read, trace, found.shape[1], trusted, rest, _choose(model, rest, few, read, true, weights))
    held = sum(factor.nbytes for factor in plan.factors(few) if factor is not None)
    return replace(plan, held=held // len(few), passing=passing // len(few))


def _candidates(model: nn.Module, distrusted: Sequence[nn.Module]) -> dict[nn.Module, str]:
    """Layers with a rule and with their own parameters, and their names."""
    uses = Counter(id(p) for module in model.modules() for p in module._parameters.values() if p is not None)
    return {
        module: name or type(module).__name__
        for name, module in model.named_modules()
        if reached(module) and module not in distrusted and all(uses[id(p)] == 1 for p in reached(module))
    }


def _by_rule(layer: nn.Module, taps: tuple[Tensor, Tensor] | None) -> Factor | None:
    if taps is None:
        return None
    try:
        return RULES[type(layer)](layer, *taps)
    except RuntimeError:
        return None  # shapes that the rule does not expect


def _choose(
    model: nn.Module,
    rest: tuple[str, ...],
    few: Tensor,
    read: Read | None,
    true: dict[str, Tensor | None],
    weights: Tensor,
) -> Written:
    """Vectorised gradients if they work and are correct, otherwise gradients one by one."""
    if rest:
        try:
            if agrees(mapped(model, rest, few, read), [true[name] for name in rest], weights):
                return mapped
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            pass  # an operation that cannot be vectorised: torch raises many kinds of errors
    return one_by_one
