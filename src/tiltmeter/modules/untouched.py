"""Untouched: evaluate a model and leave everything about it bit-identical."""

from __future__ import annotations

import copy
import ctypes
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.modules.python_state import OBJECTS, attributes_to_put_back, same_numbers, state_within_reach
from tiltmeter.shown_text import tell_caller

#: Bytes of the Mersenne twister, NumPy's default: 624 words and a position.
SIZE = 624 * 4 + 4


class NumpyState(NamedTuple):
    """The state as NumPy gives it, and its bytes in memory, if these tell whether numbers were drawn since."""

    whole: dict[str, Any]
    memory: bytes | None


_last = NumpyState({}, None)


def numpy_state() -> NumpyState:
    """The state of NumPy's global generator. It is read anew only if numbers were drawn since the last time."""
    global _last
    memory = _memory()
    if memory is None or memory != _last.memory or not _bits_tell(_last.whole):
        _last = NumpyState(np.random.get_state(legacy=False), memory)  # noqa: NPY002
    return _last


def put_numpy_back(state: NumpyState) -> None:
    """Restore this state; nothing is written if nobody drew."""
    if state.memory is None or not _bits_tell(state.whole) or _memory() != state.memory:
        np.random.set_state(state.whole)  # noqa: NPY002


def _bits_tell(whole: dict[str, Any]) -> bool:
    """Whether equal bits mean an equal state: a normal number waiting to be given out can go without a change of
    bits, but to make one takes bits."""
    return whole.get("has_gauss") == 0


def _memory() -> bytes | None:
    generator = np.random.mtrand.get_bit_generator()
    if type(generator) is not np.random.MT19937:
        return None
    return ctypes.string_at(generator.ctypes.state_address, SIZE)


def streams() -> dict[str, Any]:
    """The state of the global generators of Python, NumPy and torch, on every device in use.

    >>> sorted(streams())[:2]
    ['numpy', 'python']
    """
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": numpy_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_initialized() and torch.cuda.is_available():  # type: ignore[no-untyped-call]
        state["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    return state


def put_back(state: dict[str, Any]) -> None:
    """Restore this state, so that every stream continues from there.

    >>> state, first = streams(), torch.rand(1)
    >>> put_back(state)
    >>> bool(first == torch.rand(1))
    True

    Args:
        state: What `streams` returned.
    """
    random.setstate(state["python"])
    put_numpy_back(state["numpy"])
    torch.set_rng_state(state["torch"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "mps" in state:
        torch.mps.set_rng_state(state["mps"])


def deep_copy(model: nn.Module, keep_type: bool = False) -> nn.Module:
    """A deep copy; in single precision if the model has half precision, unless its number type is to be kept.

    >>> line = nn.Linear(2, 1).bfloat16()
    >>> deep_copy(line).weight.dtype, line.weight.dtype
    (torch.float32, torch.bfloat16)

    Tensors that a module has computed and stored (the weight under the older weight norm, a cached activation) are
    copied without their autograd history, because torch cannot copy it. Half precision is good for training but not for
    comparing gradients: the numbers are kept, and everything computed from them is precise to 1e-7.
    """
    kept = [value for module in model.modules() for value in vars(module).values() if isinstance(value, Tensor)]
    memo = {id(value): value.detach().clone() for value in kept if not value.is_leaf}
    found = copy.deepcopy(model, memo)
    halves = any(value.dtype in (torch.bfloat16, torch.float16) for value in found.parameters())
    return found.float() if halves and not keep_type else found


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Inside this context the model is in evaluation mode without gradients; afterwards everything is as before.

    >>> model = nn.Linear(3, 2)
    >>> with untouched(model):
    ...     model.training
    False
    >>> model.training
    True

    Put back is what belongs to the model: modes, buffers, gradients, attributes of its modules, and the random streams.
    Modes are set flag by flag, because a user's `train()` may do more. The autocast cache is disabled: in older
    versions of torch, a weight that was cast here without gradient was reused in the next training step. Compiled code
    runs as plain PyTorch, so that evaluating never uses up the recompilations of the training.

    Args:
        model: Network to look at; it is not changed.
    """
    modules = list(model.modules())
    modes = [module.training for module in modules]
    buffers = [
        (module, name, buffer, _version(buffer), buffer.clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    parts = [(table, list(table)) for module in modules for table in _parts(module)]
    parameters = [(one, _version(one), one.grad, _grad_version(one)) for one in _parameters(modules)]
    state, cached = streams(), torch.is_autocast_cache_enabled()
    undo = attributes_to_put_back(modules)
    grown: list[str] = []
    torch.set_autocast_cache_enabled(False)
    try:
        with _eager(), torch.no_grad():
            for module in modules:
                object.__setattr__(module, "training", False)  # torch's own takes ten times as long for a flag
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            object.__setattr__(module, "training", mode)
        for table, before in parts:
            if len(table) != len(before):
                fresh = [name for name in table if name not in before]
                grown += fresh
                for name in fresh:
                    del table[name]
        with torch.no_grad():
            for module, name, buffer, version, copy in buffers:
                module._buffers[name] = buffer
                if _version(buffer) != version:
                    buffer.copy_(copy)
            for parameter, _, gradient, _ in parameters:
                if parameter.grad is not gradient:
                    parameter.grad = gradient
        torch.set_autocast_cache_enabled(cached)
        put_back(state)
        for one in undo:
            one()
    if grown:
        raise RuntimeError(
            f"The model makes its part {grown[0]!r} in its first forward pass, of whatever points it sees there: run "
            "one batch of the training data through it before it is evaluated."
        )
    for parameter, version, _, gradient_version in parameters:
        if _version(parameter) != version or _grad_version(parameter) != gradient_version:
            name = next((name for name, one in model.named_parameters() if one is parameter), "that is gone now")
            what = "its parameter" if _version(parameter) != version else "the gradient of its parameter"
            raise RuntimeError(f"Evaluating the model changed {what} {name!r}: it cannot be measured.")


@contextmanager
def changes_told(model: nn.Module) -> Iterator[list[str]]:
    """As `untouched`; what evaluating the model changes beyond what is put back is said, by name, and in the list."""
    modules = list(model.modules())
    parameters = [(one, one.detach().clone()) for one in _parameters(modules) if not one.is_meta]
    changed: list[str] = []
    before, _ = state_within_reach(modules)
    with untouched(model):
        yield changed
    after, too_much = state_within_reach(modules)
    if too_much:
        tell_caller(
            f"The model reaches more than {OBJECTS:,} objects: if evaluating it changes one of the others, this is not "
            "noticed."
        )
    changed += sorted({name for name in {**before, **after} if before.get(name) != after.get(name)})
    changed += ["its parameters"] if not all(same_numbers(one, kept) for one, kept in parameters) else []
    if changed:
        tell_caller(
            f"While the model was evaluated, {', '.join(changed[:5])} changed, which is not put back. Unless something "
            "else changed it, this training differs from the one without a probe."
        )


def versions(model: nn.Module) -> tuple[tuple[int, int], ...]:
    """A fingerprint that changes with every in-place update of a parameter."""
    return tuple((id(parameter), _version(parameter)) for parameter in _parameters(model.modules()))


def _parameters(modules: Iterable[nn.Module]) -> Iterator[nn.Parameter]:
    """The parameters module by module, shared ones more than once: `model.parameters()` takes four times as long."""
    return (found for module in modules for found in module._parameters.values() if found is not None)


def _parts(module: nn.Module) -> tuple[dict[str, Any], ...]:
    return module._parameters, module._buffers, module._modules


def _grad_version(parameter: nn.Parameter) -> int:
    return -1 if parameter.grad is None else _version(parameter.grad)


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _eager() -> AbstractContextManager[object]:
    # If nothing was compiled, importing the compiler only to switch it off would take seconds.
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        return torch.compiler.set_stance("force_eager")  # type: ignore[no-any-return]
    return nullcontext()
