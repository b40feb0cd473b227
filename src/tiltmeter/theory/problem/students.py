"""Students: the model that is trained, a linear score or a network of a few units on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy.special import erf

from tiltmeter.record.labelled import JSON


class Activation(Protocol):
    """Any function of the field of a unit, with its derivative; both take and return arrays."""

    def __call__(self, field: np.ndarray) -> np.ndarray: ...

    def slope(self, field: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class Identity:
    """The field itself: a linear unit."""

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(field)

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.ones_like(field)


@dataclass(frozen=True)
class Erf:
    """erf(field / sqrt 2), the sigmoid of Saad and Solla (1995), whose Gaussian integrals have closed forms.

    >>> Erf()(np.array([0.0, 1.0])).round(4)
    array([0.    , 0.6827])
    """

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(erf(field / np.sqrt(2.0)))

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(2.0 / np.pi) * np.exp(-0.5 * field**2))


@dataclass(frozen=True)
class ReLU:
    """The positive part of the field."""

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(field, 0.0))

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(field > 0.0, dtype=float)


@dataclass(frozen=True)
class Tanh:
    """The hyperbolic tangent of the field."""

    def __call__(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(np.tanh(field))

    def slope(self, field: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 / np.cosh(field) ** 2)


_KINDS = {kind.__name__: kind for kind in (Identity, Erf, ReLU, Tanh)}


def activation_to_json(activation: object) -> JSON:
    """Built-in activations by name; a user's own by its repr, from which it cannot be rebuilt."""
    return type(activation).__name__ if type(activation) in _KINDS.values() else {"repr": repr(activation)}


def activation_from_json(value: JSON) -> Activation:
    if not isinstance(value, str) or value not in _KINDS:
        raise ValueError(f"The activation {value!r} was a user's own and cannot be rebuilt from a file.")
    return _KINDS[value]()


__all__ = ["Linear", "Network", "Softmax"]


@dataclass(frozen=True)
class Linear:
    """One linear score, W.x / sqrt(d), plus a bias if `SGD(train_bias=True)`.

    >>> import tiltmeter as tm
    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> tm.predict(problem, tm.SGD(lr=0.1), [10.0], student=Linear())["loss"].values.round(3)  # the default
    array([[0.327, 0.354]])
    """

    def to_json(self) -> dict[str, JSON]:
        return {"student": "linear"}


@dataclass(frozen=True)
class Softmax:
    """One linear score per class, turned into probabilities by a softmax and trained on cross-entropy.

    >>> import tiltmeter as tm
    >>> problem = tm.theory.class_mixture(3)
    >>> sorted(tm.predict(problem, tm.SGD(lr=0.1), [1.0], student=Softmax(), curves=("loss",)))
    ['loss']

    For problems of several classes (`ClassMixture`), where `Linear()` is trained on the squared error of the scores
    against e_y - 1/C.
    """

    def to_json(self) -> dict[str, JSON]:
        return {"student": "softmax"}


@dataclass(frozen=True)
class Network:
    """A network of `units` hidden units: score = sum_k a_k g(W_k.x / sqrt(d)), plus a trained bias if requested.

    >>> Network(2).weights
    (0.5, 0.5)

    The second layer is trained by a_k <- a_k - (lr / d) (score - y) g(field_k). Weight decay acts only on the W_k. From
    `Zero()` all units stay equal, and ReLU units do not change: start from `Random()` or `Overlaps(...)`.

    Args:
        units: Number of hidden units.
        activation: Function of the hidden units.
        train_second_layer: Whether the second layer is trained, at the same rate.
        second_layer: Initial weights of the second layer; None: 1 / units each.
    """

    units: int
    activation: Activation = Erf()
    train_second_layer: bool = False
    second_layer: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.units, bool) or not isinstance(self.units, (int, np.integer)):
            raise TypeError(f"`units` should be an integer. Found units = {self.units!r}.")
        if self.units < 1:
            raise ValueError(f"`units` should be at least 1. Found units = {self.units}.")
        if isinstance(self.activation, type) or not (callable(self.activation) and hasattr(self.activation, "slope")):
            raise TypeError(
                "`activation` should be Erf(), ReLU(), Tanh(), Identity() or your own with `__call__` and `slope`. "
                f"Found activation = {self.activation!r}."
            )
        if self.second_layer is not None:
            values = tuple(float(value) for value in self.second_layer)
            if len(values) != self.units or not np.isfinite(values).all():
                raise ValueError(
                    f"`second_layer` should have one finite number for each of the {self.units} units. "
                    f"Found second_layer = {self.second_layer!r}."
                )
            object.__setattr__(self, "second_layer", values)

    @property
    def weights(self) -> tuple[float, ...]:
        """The initial second layer."""
        return (1.0 / self.units,) * self.units if self.second_layer is None else self.second_layer

    def to_json(self) -> dict[str, JSON]:
        return {
            "student": "network",
            "units": int(self.units),
            "activation": activation_to_json(self.activation),
            "train_second_layer": self.train_second_layer,
            "second_layer": None if self.second_layer is None else list(self.second_layer),
        }


Student: TypeAlias = Linear | Softmax | Network


def student_from_json(value: Mapping[str, Any]) -> Student:
    """The student written by `to_json`."""
    match value["student"]:
        case "linear":
            return Linear()
        case "softmax":
            return Softmax()
        case "network":
            second = value["second_layer"]
            return Network(
                value["units"],
                activation_from_json(value["activation"]),
                value["train_second_layer"],
                None if second is None else tuple(second),
            )
    raise ValueError(f"Unknown student {value['student']!r}.")


def checked_student(student: object) -> Student:
    """The student, or an error that says which students exist."""
    if not isinstance(student, (Linear, Softmax, Network)):
        raise TypeError(f"`student` should be Linear(), Softmax() or Network(units, ...). Found {student!r}.")
    return student


def refuse_softmax(student: Student) -> None:
    """A softmax has a score per class: two labels need one score only."""
    if isinstance(student, Softmax):
        raise ValueError(
            "`Softmax()` is for problems of several classes (`class_mixture`). With two labels use Linear(), or "
            "`equilibrium(loss=Logistic())` for trained students."
        )
