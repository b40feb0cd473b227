"""Stacked: many copies of one architecture, each with its own parameters, evaluated at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from tiltmeter.training.stacked_linear_layers import (
    Layer,
    Product,
    differentiate_chain,
    linear_layers,
    run_chain,
)


class Stacked:
    """Models of one architecture with their parameters and buffers stacked along a first dimension, `runs`.

    >>> models = [nn.Linear(3, 1) for _ in range(4)]
    >>> stacked = Stacked(models)
    >>> stacked(torch.zeros(4, 10, 3)).shape
    torch.Size([4, 10, 1])

    Stacks of Linear layers and activations use batched matrix products; other modules use `torch.func`. The given
    models are not changed and share no memory with the stack.

    Args:
        models: Models of one architecture.
        read: Finds the scores in what the model returns; None: the model returns scores.
        quick: Whether stacks of Linear layers use batched products; otherwise `torch.func` everywhere.
    """

    layers: tuple[Layer, ...] | None

    def __init__(
        self, models: Sequence[nn.Module], read: Callable[[Any], Tensor] | None = None, quick: bool = True
    ) -> None:
        self._model, self._read = copy.deepcopy(models[0]), read
        self.layers = linear_layers(self._model) if quick and read is None else None
        try:
            parameters, buffers = stack_module_state(list(models))
        except RuntimeError as error:
            raise _cannot(error) from None
        trained = {name for name, parameter in self._model.named_parameters() if parameter.requires_grad}
        flipped = {
            f"{name}.weight".removeprefix(".")
            for name, module in self._model.named_modules()
            if isinstance(module, nn.Linear)
        }
        self.parameters: dict[str, Tensor] = {
            # A Linear layer multiplies by its transposed weights. Stored transposed, the gradients of a batched
            # product have the layout of the weights, and the update reads memory in order.
            name: (_flipped(value) if name in flipped else value)
            .detach()
            .requires_grad_(name in trained and not self.quick)
            for name, value in parameters.items()
        }
        self.buffers: dict[str, Tensor] = {name: value.detach() for name, value in buffers.items()}
        self.trained: tuple[str, ...] = tuple(name for name in self.parameters if name in trained)
        self.runs = len(models)

    @property
    def quick(self) -> bool:
        """Whether the forward pass is one batched product per layer."""
        return self.layers is not None

    def __call__(self, x: Tensor) -> Tensor:
        """The outputs while training, each run with its own batch: x has shape (runs, batch, ...)."""
        if self.layers is not None:
            return run_chain(self.layers, self.parameters, x)
        self._model.train()
        return self._forward(x, own_points=True)

    def differentiate(
        self, x: Tensor, loss: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, dict[str, Tensor | Product | None]]:
        """Return the losses of all runs on their own batches, and the gradient of the *sum* of losses.

        Every run has its own parameters, so this gradient holds the gradient of each run. None: the parameter does not
        affect the loss.
        """
        if self.layers is not None:
            losses, gradients = differentiate_chain(self.layers, self.parameters, x, loss)
            return losses, {name: gradients[name] for name in self.trained}
        losses = loss(self(x))
        wanted = [self.parameters[name] for name in self.trained]
        found = torch.autograd.grad(losses.sum(), wanted, allow_unused=True)
        return losses.detach(), dict(zip(self.trained, found, strict=True))

    @torch.no_grad()
    def evaluate(self, x: Tensor) -> Tensor:
        """The outputs in evaluation mode, all runs at the same points: x has shape (points, ...)."""
        if self.layers is not None:
            return run_chain(self.layers, self.parameters, x.unsqueeze(0))
        self._model.eval()
        return self._forward(x, own_points=False)

    def model(self, run: int) -> nn.Module:
        """Return a separate model with the parameters and buffers of one run."""
        single = copy.deepcopy(self._model)
        state = {name: value[run].detach().clone() for name, value in {**self.parameters, **self.buffers}.items()}
        missing, _ = single.load_state_dict(state, strict=False)
        tied = {name for name, _ in single.named_parameters(remove_duplicate=False)}
        if set(missing) - tied:
            raise ValueError(f"The model of run {run} lacks {', '.join(sorted(set(missing) - tied))}.")
        return single.train()

    def _forward(self, x: Tensor, own_points: bool) -> Tensor:
        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], points: Tensor) -> Tensor:
            output = functional_call(self._model, (parameters, buffers), (points,))
            return output if self._read is None else self._read(output)

        every = torch.vmap(one, in_dims=(0, 0, 0 if own_points else None), randomness="different")
        try:
            outputs: Tensor = every(self.parameters, self.buffers, x)
        except (RuntimeError, ValueError) as error:
            raise _cannot(error) from error
        return outputs


def _flipped(value: Tensor) -> Tensor:
    return value.detach().transpose(1, 2).contiguous().transpose(1, 2)


def _cannot(error: Exception) -> ValueError:
    said = str(error).strip().split("\n")[0].rstrip(".")
    return ValueError(
        f"`make` should make models that torch.func can stack. Found: {said}. "
        "Train the seeds one after another with `train` and join the runs with `stack`."
    )
