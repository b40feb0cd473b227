"""Untouched: evaluate a model and leave everything about it bit-identical."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from tiltmeter.passes.python_state import PythonState
from tiltmeter.passes.streams import put_back, streams


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Inside this context the model is in evaluation mode without gradients; afterwards everything is as before.

    Modes, buffers and random streams are restored. Modes are set flag by flag, because a user's `train()` may do more.
    The autocast cache is disabled: in older versions of torch, a weight that was cast here without gradient was reused
    in the next training step. Compiled code runs as plain PyTorch, so that evaluating never uses up the recompilations
    of the training.
    """
    modules = list(model.modules())
    modes = [module.training for module in modules]
    buffers = [
        (module, name, buffer, _version(buffer), buffer.clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    parameters = [(parameter, _version(parameter)) for parameter in _parameters(modules)]
    state, cached = streams(), torch.is_autocast_cache_enabled()
    plain = PythonState(modules)
    torch.set_autocast_cache_enabled(False)
    try:
        with _eager(), torch.no_grad():
            for module in modules:
                object.__setattr__(module, "training", False)  # torch's own takes ten times as long for a flag
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            object.__setattr__(module, "training", mode)
        with torch.no_grad():
            for module, name, buffer, version, copy in buffers:
                module._buffers[name] = buffer
                if _version(buffer) != version:
                    buffer.copy_(copy)
        torch.set_autocast_cache_enabled(cached)
        put_back(state)
        plain.put_back()
    for parameter, version in parameters:
        if _version(parameter) != version:
            name = next((name for name, one in model.named_parameters() if one is parameter), "that is gone now")
            raise RuntimeError(f"Evaluating the model changed its parameter {name!r}: it cannot be measured.")


def versions(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """A fingerprint that changes with every in-place update of a parameter."""
    return tuple((id(parameter), _version(parameter)) for parameter in _parameters(model.modules()))


def _parameters(modules: Iterable[nn.Module]) -> Iterator[nn.Parameter]:
    """The parameters module by module, shared ones more than once: `model.parameters()` takes four times as long."""
    return (found for module in modules for found in module._parameters.values() if found is not None)


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _eager() -> AbstractContextManager[object]:
    # If nothing was compiled, importing the compiler only to switch it off would take seconds.
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        return torch.compiler.set_stance("force_eager")  # type: ignore[no-any-return]
    return nullcontext()
