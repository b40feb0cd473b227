"""Rule: how weights and steps of a narrow network follow those of the wide one, and how optimisers take steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tiltmeter.forecast.twin.layers import Shares

#: Steps taken to see what an optimiser does; some warm up for six.
STEPS = 8
#: The longest side of the tensors on which it is tried.
SIDE = 4
#: Decay and small constants in an optimiser's formula change a step by less than this part.
TOLERANCE = 0.02


class Kind(NamedTuple):
    """`normalised`: steps do not depend on the size of gradients (Adam, sign descent), else they are proportional to it
    (SGD). `decoupled`: decay does not pass through the gradient.
    """

    normalised: bool
    decoupled: bool


def kind_of(make: Callable[[Sequence[Tensor]], Any], like: Sequence[Tensor], who: str) -> Kind:
    """Try an optimiser on parameters of these shapes; refuse one that no route can treat.

    >>> kind_of(lambda given: torch.optim.Adam(given), [torch.zeros(2, 3)], "A twin")
    Kind(normalised=True, decoupled=False)

    `like` are the parameters of the network, which are not changed; `who` is named in messages.
    """
    made = make(list(like))  # what it says of the shapes is then true
    shapes = [tuple(min(SIDE, side) for side in one.shape) for one in like]
    name = type(made).__name__
    refused = f"{who} needs an optimiser that treats every weight separately, as SGD and Adam. Found {name}"
    if isinstance(made, torch.optim.LBFGS):
        raise ValueError(f"{refused}, which evaluates the loss several times a step: no route foretells that.")
    plain = _moved(make, shapes, 1.0, name, who)
    again = _moved(make, shapes, 1.0, name, who, other=True)
    if not torch.equal(_rest(plain), _rest(again)):
        raise ValueError(f"{refused}, which mixes the gradients of different weights: train a copy with `train`.")
    larger = _moved(make, shapes, 16.0, name, who)
    one, other = (torch.cat([part.flatten() for part in parts]) for parts in (plain, larger))
    if float((one - other).norm()) <= TOLERANCE * float(one.norm()):
        return Kind(True, _decoupled(make, shapes))
    if float((16.0 * one - other).norm()) <= TOLERANCE * float(other.norm()):
        return Kind(False, True)
    raise ValueError(f"{refused}, whose steps are neither proportional to the gradient nor independent of its size.")


def _made(make: Callable[[Sequence[Tensor]], Any], shapes: Sequence[tuple[int, ...]], value: float = 0.0) -> Any:
    return make([torch.full(shape, value, dtype=torch.float64, requires_grad=True) for shape in shapes])


def _moved(
    make: Callable[[Sequence[Tensor]], Any],
    shapes: Sequence[tuple[int, ...]],
    size: float,
    name: str,
    who: str,
    other: bool = False,
) -> list[Tensor]:
    """The last of some steps along fixed gradients; `other` changes the gradient of the first number.

    Gradients are large, so that a small constant added to their size does not show.
    """
    given = [torch.zeros(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    made = make(given)
    given = _few(made, given)
    for group in made.param_groups:
        group["lr"] = 1e-3  # a schedule may begin at zero
    draw, before = torch.Generator().manual_seed(0), given
    for _ in range(STEPS):
        before = [one.detach().clone() for one in given]
        for number, one in enumerate(given):
            one.grad = 100.0 * size * torch.randn(one.shape, generator=draw, dtype=torch.float64)
            if other and number == 0:
                one.grad.view(-1)[0] *= 3.0
        try:
            made.step()
        except (TypeError, RuntimeError, ValueError) as error:
            said = str(error).strip().splitlines()[0]
            raise ValueError(
                f"{who} takes plain steps of the optimiser. Found that {name} needs more: {said}"
            ) from error
    return [one.detach() - was for one, was in zip(given, before, strict=True)]


def _few(made: Any, given: Sequence[Tensor]) -> list[Tensor]:
    """Leave two parameters of every number of dimensions in each group of this optimiser, and return them.

    Deep networks have many parameters that are treated alike, and every one takes its time in a step.
    """
    left: list[Tensor] = []
    for group in made.param_groups:
        alike: dict[int, list[Tensor]] = {}
        for one in group["params"]:
            alike.setdefault(one.ndim, []).append(one)
        group["params"] = [one for some in alike.values() for one in some[:2]]
        left += group["params"]
    for one in given:  # an optimiser made of others may still hold them
        one.grad = torch.zeros_like(one)
    return left


def _rest(moved: list[Tensor]) -> Tensor:
    """All numbers but the first."""
    return torch.cat([one.flatten() for one in moved])[1:]


def _decoupled(make: Callable[[Sequence[Tensor]], Any], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether ones without a gradient shrink in proportion to themselves rather than by a full step."""
    given = [torch.ones(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    made = make(given)
    if not any(group.get("weight_decay") for group in made.param_groups):
        return False
    start = [(one, group) for group in made.param_groups for one in group["params"] if group.get("weight_decay")]
    for one in given:
        one.grad = torch.zeros_like(one)
    for group in made.param_groups:
        group["lr"] = 1e-3
    made.step()
    one, group = start[0]
    lost = float((1.0 - one.detach()).mean())
    return lost <= 1.5e-3 * float(group["weight_decay"])


class Scale(NamedTuple):
    """Factors of one parameter: of its weights, of its gradient (found, not set), and of the two kinds of rates.

    `norm` is what the square of its gradient's norm counts in that of the wide network, for clipping.
    """

    weight: float = 1.0
    gradient: float = 1.0
    normalised_rate: float = 1.0
    proportional_rate: float = 1.0
    norm: float = 1.0

    @property
    def inner_decay(self) -> float:
        """Of decay that is added to the gradient before a normalised optimiser sees it."""
        return self.gradient / self.weight


def scale_of(shares: Shares, readout: bool) -> Scale:
    """The rule for a parameter of which these shares stay; `readout`: its outputs are those of the network.

    >>> scale_of(Shares(out=0.25, into=0.25), readout=False)
    Scale(weight=2.0, gradient=4.0, normalised_rate=4.0, proportional_rate=1.0, norm=1.0)
    >>> scale_of(Shares(into=0.25), readout=True)
    Scale(weight=4.0, gradient=1.0, normalised_rate=4.0, proportional_rate=4.0, norm=4.0)
    """
    out, into = shares
    weight = 1.0 / into if readout and out == 1.0 else into**-0.5
    return Scale(
        weight=weight,
        gradient=1.0 / out,
        normalised_rate=1.0 / into,
        proportional_rate=out / into,
        norm=out / into,
    )


def fused_adam_options(made: Any, group: Mapping[str, Any]) -> dict[str, Any]:
    """What to change in a parameter group of this optimiser; nothing if the user chose, or torch has no such step.

    >>> made = torch.optim.Adam([torch.zeros(3)])
    >>> fused_adam_options(made, made.param_groups[0])
    {'fused': True}

    Small tensors take as long as the calls of torch's functions, of which the usual step makes a dozen.
    """
    usual = group.get("foreach") is None and group.get("fused") is None and not group.get("differentiable")
    known = type(made) in (torch.optim.Adam, torch.optim.AdamW) and not isinstance(group["lr"], torch.Tensor)
    return {"fused": True} if usual and known and not group.get("capturable") else {}
