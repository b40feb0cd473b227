"""NumPy's global random stream: saved and restored in a hundredth of the time of `get_state` if nobody draws."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

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
