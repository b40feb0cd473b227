"""Output kind: whether a model answers with probabilities, told by what it ends in and never by the values it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tiltmeter.measures.task import Link
from tiltmeter.modules.forward import Read, scores
from tiltmeter.shown_text import warn_caller

#: Functions that end in probabilities; modules such as nn.Sigmoid call them.
SQUASHING = ("sigmoid", "sigmoid_", "softmax")
#: Functions that pass values on, in another shape or precision, or kept away from 0 and 1.
PASSING = (
    *("squeeze", "unsqueeze", "flatten", "view", "reshape", "contiguous", "permute", "transpose", "select"),
    *("__getitem__", "__get__", "float", "double", "to", "type", "clone", "clamp", "clip"),
)


class LastFunction(TorchFunctionMode):
    """Remembers, while a model runs, which tensors came out of a sigmoid or softmax, or were passed on from there.

    >>> with LastFunction() as last:
    ...     chance = torch.sigmoid(torch.zeros(3, 1)).squeeze(1)
    ...     score = torch.logit(chance)
    >>> last.made(chance), last.made(score)
    ('sigmoid', '')
    """

    def __init__(self) -> None:
        super().__init__()
        # The tensors are kept: the number of one that is gone could be given to another.
        self._tensors: dict[int, tuple[Tensor, str]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if isinstance(result, Tensor):
            before = self.made(args[0]) if args and name in PASSING else ""
            kind = name.rstrip("_") if name in SQUASHING else before
            if kind:
                self._tensors[id(result)] = result, kind
            elif id(result) in self._tensors:
                del self._tensors[id(result)]  # changed in place
        return result

    def made(self, tensor: Any) -> str:
        """The function that this tensor came out of; empty for any other than a sigmoid or softmax."""
        return self._tensors[id(tensor)][1] if id(tensor) in self._tensors else ""


def gives_probabilities(model: nn.Module, x: Any, read: Read | None) -> bool:
    """Whether the scores of the model come out of a sigmoid or softmax, a module or a function.

    >>> x = torch.randn(8, 3)
    >>> inner = nn.Linear(3, 1)
    >>> gives_probabilities(inner, x, None), gives_probabilities(nn.Sequential(inner, nn.Sigmoid()), x, None)
    (False, True)

    The model runs once on these points, and its last function is looked at; several outputs count only after a
    softmax. Values are not looked at: scores may lie between 0 and 1 by chance. A model that hides its functions, as a
    scripted one does, can say it with an attribute `gives_probabilities`; a loss of probabilities says it, too.
    """
    declared = getattr(model, "gives_probabilities", None)
    if isinstance(declared, bool):
        return declared
    with LastFunction() as last:
        _, score = next(scores(model, x, read, len(x)))
    kind = last.made(score)
    return kind == "softmax" or (kind == "sigmoid" and score.ndim == 1)


def loss_of_probabilities(several: bool) -> Any:
    """The loss that fits a model which ends in a sigmoid or softmax."""
    return cross_entropy_of_probabilities if several else nn.BCELoss()


def cross_entropy_of_probabilities(probability: Tensor, y: Tensor) -> Tensor:
    """Mean of -log of the probability given to the right class."""
    chosen = probability.gather(1, y[:, None])[:, 0]
    return -chosen.clamp_min(torch.finfo(probability.dtype).tiny).log().mean()


def say_probabilities(loss: Any, link: Link, definition: str) -> None:
    """Say once that outputs are probabilities: which loss was taken, or that the one given takes something else."""
    if loss is None:
        warn_caller(
            "The model's outputs are probabilities, since it ends in a sigmoid or softmax: they are taken as such, "
            f"with the {definition} of probabilities."
        )
    elif link in ("sigmoid", "softmax"):
        warn_caller(
            f"The model's outputs are probabilities, since it ends in a sigmoid or softmax, but {definition} takes "
            "scores before it: leave that layer out, or pass a loss of probabilities, as nn.BCELoss()."
        )
