"""Flow and Descent: training on all examples at once, in continuous time or in steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from tiltmeter.record.labelled import JSON, Number
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.starts import Start, Zero


@dataclass(frozen=True, eq=False)
class _FullBatch:
    """What full-batch training shares with SGD; `proportions` are the shares of the groups in the training set.

    Args:
        lr: Learning rate.
        weight_decay: Strength of the decay of the weights.
        weights: Factor on the loss of each group, or of each (group, label); None: all 1.
        proportions: Share of each group in training; None: as in the data.
        train_bias: Whether a bias is trained beside the weights.
        start: Student before training, one of `tm.theory.starts`.
    """

    lr: Number
    weight_decay: Number = 0.0
    weights: Mapping[Hashable, Number] | None = None
    proportions: Mapping[Hashable, Number] | None = None
    train_bias: bool = False
    start: Start = Zero()

    def __new__(cls, *_: Any, **given: Any) -> Self:
        if "interventions" in given:
            raise TypeError(
                f"{cls.__name__} has no interventions. Use SGD(lr=..., interventions=(law,)): `predict` follows it on "
                "fresh data, `simulate` with method=Direct() on a fixed set."
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        plain = self.plain()  # the same checks, with the same messages, as SGD
        if plain.scheduled:
            raise TypeError(
                f"{type(self).__name__} has no schedules: `lr`, `weights` and `proportions` should be numbers. Use SGD "
                "in `simulate` with method=Direct()."
            )
        for name in ("lr", "weight_decay", "weights", "proportions"):
            object.__setattr__(self, name, getattr(plain, name))

    def plain(self) -> SGD:
        """Plain SGD with the same learning rate, weights and start."""
        return SGD(
            lr=self.lr,
            weight_decay=self.weight_decay,
            weights=self.weights,
            proportions=self.proportions,
            train_bias=self.train_bias,
            start=self.start,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _FullBatch):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((type(self), self.plain()))

    def to_json(self) -> dict[str, JSON]:
        plain = self.plain().to_json()
        kept = ("lr", "weight_decay", "weights", "proportions", "train_bias", "start")
        return {"training": type(self).__name__.lower(), **{name: plain[name] for name in kept}}


@dataclass(frozen=True, eq=False)
class Flow(_FullBatch):
    """Gradient flow: dW/dt = -lr times the gradient of the mean loss, the limit of small steps, in the time of `SGD`.

    >>> Flow(lr=1.0, weights={"+": 1.0, "-": 2.0}).weights
    {'+': 1.0, '-': 2.0}

    With `data=Fixed(...)` the mean is over a training set that is used many times. Otherwise it is over the whole
    population; this is the limit of SGD as lr -> 0 (at the same lr times t).
    """


@dataclass(frozen=True, eq=False)
class Descent(_FullBatch):
    """Full-batch gradient descent on the mean loss of a fixed training set, with heavy-ball momentum; time is steps.

    >>> Descent(lr=0.3, momentum=0.8).momentum
    0.8

    At the same lr, one step corresponds to time 1 of gradient flow.

    Args:
        lr: Learning rate of PyTorch, for half squared error averaged over all examples.
        momentum: Heavy-ball momentum; 0: none.
    """

    momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        SGD(lr=1.0, momentum=self.momentum)

    def __hash__(self) -> int:
        return hash((super().__hash__(), self.momentum))

    def to_json(self) -> dict[str, JSON]:
        return {**super().to_json(), "momentum": float(self.momentum)}


Training: TypeAlias = SGD | Flow | Descent


def training_from_json(value: Mapping[str, Any]) -> Training:
    """The Flow, Descent or SGD written by `to_json`."""
    kind = value.get("training", "sgd")
    if kind == "sgd":
        return SGD.from_json(value)
    if kind not in ("flow", "descent"):
        raise ValueError(f"Unknown training {kind!r}.")
    filled = {**SGD(lr=1.0).to_json(), **{name: part for name, part in value.items() if name != "training"}}
    plain = SGD.from_json(filled)
    given = {
        name: getattr(plain, name) for name in ("lr", "weight_decay", "weights", "proportions", "train_bias", "start")
    }
    return Flow(**given) if kind == "flow" else Descent(**given, momentum=plain.momentum)
