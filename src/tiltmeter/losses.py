"""Losses: convex losses of a score and a label, shared by theory, simulation, training and forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logsumexp, softmax

from tiltmeter.record.labelled import JSON

__all__ = ["CrossEntropy", "Hinge", "Logistic", "Loss", "Square"]


class Loss(ABC):
    """A convex loss, per example. A new one is a small frozen class with these three functions.

    >>> class Exponential(Loss):
    ...     definition = "exp(-y score), labels -1/+1"
    ...     def value(self, score, y): return np.exp(-y * score)
    ...     def gradient(self, score, y): return -y * np.exp(-y * score)
    ...     def curvature(self, score, y): return np.exp(-y * score)
    >>> Exponential().value(np.array([-1.0, 0.0, 1.0]), np.ones(3)).round(2)
    array([2.72, 1.  , 0.37])

    `kinks` lists the margins y * score at which the slope or the curvature jumps, so that averages are cut there.
    """

    definition: ClassVar[str]
    kinks: ClassVar[tuple[float, ...]] = ()

    @abstractmethod
    def value(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of every example."""

    @abstractmethod
    def gradient(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Its derivative with respect to the score."""

    @abstractmethod
    def curvature(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Its second derivative with respect to the score (between kinks)."""

    def torch(self) -> Callable[[Any, Any], Any]:
        """The same per-example loss for tensors of scores and of labels -1/+1; take `.mean()` to train."""
        raise NotImplementedError(f"{type(self).__name__} has no torch twin: define its method `torch`.")


@dataclass(frozen=True)
class Square(Loss):
    """Half the squared error, 1/2 (score - y)^2.

    >>> Square().value(np.array(0.5), np.array(1.0)).item()
    0.125
    """

    definition: ClassVar[str] = "half squared error"

    def value(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 * (score - y) ** 2)

    def gradient(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(score - y)

    def curvature(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.ones(np.broadcast(score, y).shape)

    def torch(self) -> Callable[[Any, Any], Any]:
        return lambda score, y: 0.5 * (score - y) ** 2


@dataclass(frozen=True)
class Logistic(Loss):
    """Binary cross-entropy, log(1 + exp(-y score)) for labels -1/+1.

    >>> Logistic().value(np.array(0.0), np.array(1.0)).item()
    0.693147...
    """

    definition: ClassVar[str] = "logistic loss"

    def value(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.logaddexp(0.0, -y * score))

    def gradient(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(-y * expit(-y * score))

    def curvature(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        share = expit(-y * score)
        return np.asarray(share * (1.0 - share))

    def torch(self) -> Callable[[Any, Any], Any]:
        from torch.nn.functional import softplus

        return lambda score, y: softplus(-y * score)


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - y score), the loss of the support vector machine.

    >>> Hinge().value(np.array([0.5, 2.0]), np.array(1.0)).tolist()
    [0.5, 0.0]
    """

    definition: ClassVar[str] = "hinge loss"
    kinks: ClassVar[tuple[float, ...]] = (1.0,)

    def value(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(0.0, 1.0 - y * score))

    def gradient(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.where(y * score < 1.0, -1.0 * y, 0.0))

    def curvature(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.zeros(np.broadcast(score, y).shape)

    def torch(self) -> Callable[[Any, Any], Any]:
        return lambda score, y: (1.0 - y * score).clamp(min=0.0)


@dataclass(frozen=True)
class CrossEntropy:
    """-log softmax(scores)[y], for several outputs and labels 0, 1, 2, ...; the theory of one score refuses it.

    >>> CrossEntropy().value(np.zeros((1, 4)), np.array([2])).round(3).tolist()
    [1.386]
    """

    definition: ClassVar[str] = "cross-entropy"

    def value(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of every example: one row of scores each."""
        return np.asarray(logsumexp(score, axis=-1) - np.take_along_axis(score, y[..., None], -1)[..., 0])

    def gradient(self, score: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Its derivatives with respect to the scores: softmax minus one at the label."""
        return np.asarray(softmax(score, axis=-1) - np.eye(score.shape[-1])[y])

    def torch(self) -> Callable[[Any, Any], Any]:
        """The same per-example loss for tensors; take `.mean()` to train."""
        from torch.nn.functional import cross_entropy

        return lambda score, y: cross_entropy(score, y, reduction="none")


_NAMED: dict[str, Any] = {"square": Square(), "logistic": Logistic(), "hinge": Hinge(), "cross-entropy": CrossEntropy()}


def checked_loss(loss: object) -> Loss:
    """The loss itself, or a sentence that says what a loss is."""
    if isinstance(loss, Loss):
        return loss
    found = f"the class {loss.__name__}: call it" if isinstance(loss, type) else type(loss).__name__
    raise TypeError(f"`loss` should be a loss, as Square(), Logistic() or Hinge(). Found {found}.")


def loss_to_json(loss: Any) -> dict[str, JSON]:
    """A loss as JSON: its name, or for a user's own class or a loss of torch what it says of itself."""
    for name, known in _NAMED.items():
        if loss == known:
            return {"loss": name}
    said = repr(loss) if "0x" not in repr(loss) else getattr(loss, "__qualname__", type(loss).__name__)
    return {"loss": "custom", "definition": getattr(loss, "definition", said), "repr": said}


def loss_from_json(value: Mapping[str, Any]) -> Any:
    """The loss that `loss_to_json` wrote; a user's own class cannot be rebuilt from a file.

    >>> loss_from_json(loss_to_json(Logistic()))
    Logistic()
    """
    if value["loss"] not in _NAMED:
        raise ValueError(f"The loss {value.get('repr', value['loss'])} is the user's own and cannot be rebuilt.")
    return _NAMED[value["loss"]]
