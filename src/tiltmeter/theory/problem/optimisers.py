"""Optimisers that treat every coordinate separately: they need all d of them, so only the direct simulation supports
them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tiltmeter.record.labelled import JSON
from tiltmeter.schedules import Schedule
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.starts import Start, Zero

__all__ = ["Adam", "AdamW", "SignSGD"]


@dataclass(frozen=True, kw_only=True)
class _Coordinatewise:
    """What these optimisers share with SGD: the data of a step, and the start of the student.

    Args:
        lr: Learning rate of the theory, with t = steps / d; a number or a schedule.
        batch: Fresh examples in one step.
        weight_decay: Shrinks the weights by lr * weight_decay / d in every step.
        weights: Factor on the loss of each group, or of each (group, label); None: all 1.
        proportions: How often each group is drawn; None: as in the data.
        train_bias: Whether a bias is trained beside the weights.
        start: Student before training, one of `tm.theory.starts`.
    """

    lr: float | Schedule
    batch: int = 1
    weight_decay: float = 0.0
    weights: Mapping[Hashable, float] | None = None
    proportions: Mapping[Hashable, float] | None = None
    train_bias: bool = False
    start: Start = Zero()

    def __post_init__(self) -> None:
        self.plain()  # the same checks, with the same messages, as SGD

    def plain(self) -> SGD:
        """Plain SGD that uses the same data."""
        return SGD(
            lr=self.lr,
            batch=self.batch,
            weight_decay=self.weight_decay,
            weights=self.weights,
            proportions=self.proportions,
            train_bias=self.train_bias,
            start=self.start,
        )

    def to_json(self) -> dict[str, JSON]:
        return {"optimiser": type(self).__name__, **self.plain().to_json()}


@dataclass(frozen=True, kw_only=True)
class SignSGD(_Coordinatewise):
    """W_i <- W_i - (lr / d) sign(gradient_i).

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> runs = tm.simulate(problem, SignSGD(lr=0.5), [1.0, 10.0], d=50, seeds=4, method=tm.theory.Direct())
    >>> runs["loss"].mean("seed").sel(group="+").values.round(2)
    array([0.48, 0.34])
    """


@dataclass(frozen=True, kw_only=True)
class Adam(_Coordinatewise):
    """W_i <- W_i - (lr / d) mean_i / (sqrt(square_i) + epsilon), Kingma and Ba (2015); decay is added to the gradient.

    >>> Adam(lr=0.5).betas
    (0.9, 0.999)

    For w = W / sqrt(d), as in PyTorch, the same run has lr_torch = lr / d^(3/2); scalars (bias, second layer) change by
    lr / d. The gradient is that of w, of order one per coordinate.

    Args:
        betas: Decay rates of the mean and of the square of the gradient.
        epsilon: Added to the root of the square.
    """

    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.betas) != 2 or not all(0.0 <= beta < 1.0 for beta in self.betas):
            raise ValueError(f"`betas` should be two numbers in [0, 1). Found betas = {self.betas}.")
        if not self.epsilon > 0:
            raise ValueError(f"`epsilon` should be positive. Found epsilon = {self.epsilon}.")

    def to_json(self) -> dict[str, JSON]:
        return {**super().to_json(), "betas": list(self.betas), "epsilon": self.epsilon}


@dataclass(frozen=True, kw_only=True)
class AdamW(Adam):
    """Adam with the decay of Loshchilov and Hutter (2019): W <- (1 - lr weight_decay / d) W, separate from the
    gradient.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> adamw, direct = AdamW(lr=0.5, weight_decay=0.1), tm.theory.Direct()
    >>> runs = tm.simulate(problem, adamw, [1.0, 10.0], d=50, seeds=4, method=direct)
    >>> runs["loss"].mean("seed").sel(group="+").values.round(2)
    array([0.48, 0.37])
    """


StudentOptimiser: TypeAlias = SGD | SignSGD | Adam


def plain_sgd(optimiser: object) -> SGD:
    """The SGD itself, or the plain SGD that uses the same data as a coordinate-wise optimiser."""
    if isinstance(optimiser, _Coordinatewise):
        return optimiser.plain()
    if isinstance(optimiser, SGD):
        return optimiser
    raise TypeError(f"`sgd` should be an SGD(lr=...), Adam, AdamW or SignSGD. Found {type(optimiser).__name__}.")
