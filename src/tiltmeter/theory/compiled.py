"""Compiled: the one way in which loops are compiled by numba, each under a name of its own.

numba keeps machine code in files, and that of a function holds a copy of every compiled function that it calls. Two
things follow. Copies under one name from two processes are taken for each other, so no two compiled functions may share
a name. And a file does not notice that a function it holds a copy of has changed, so all names end in the checksum of
all sources of compiled code: older files are never read again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def _checksum_of_sources() -> str:
    package = Path(__file__).parent
    checksum = 0
    for path in sorted(package.rglob("compiled*.py")):
        name = path.relative_to(package).as_posix().encode()
        checksum = zlib.crc32(path.read_bytes(), zlib.crc32(name, checksum))
    return f"{checksum:08x}"


VERSION = _checksum_of_sources()


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a loop, without fused operations; its machine code is kept for the next process."""
    return _compile(function, function.__qualname__, cache=True)


def compiled_fused(function: Function) -> Function:
    """The same, allowing fused multiply-adds. A caller's options do not apply to what it calls."""
    return _compile(function, function.__qualname__, cache=True, fastmath={"contract"})


def compiled_sum(function: Callable[..., Any]) -> Any:
    """The same for a loop that adds up terms, in any order that uses the vector registers well."""
    return _compile(function, function.__qualname__, cache=True, fastmath={"contract", "reassoc"})


def compiled_rule(name: str) -> Callable[[Function], Function]:
    """The same for a function that is made several times, under a name that says which of them it is.

    It is not kept by itself: the functions that call it hold its code.
    """

    def compile_it(function: Function) -> Function:
        return _compile(function, name, cache=False, fastmath={"contract", "reassoc"})

    return compile_it


def _compile(function: Function, name: str, **options: Any) -> Function:
    function.__qualname__ = f"{name}_{VERSION}"
    return cast(Function, njit(nogil=True, error_model="numpy", **options)(function))
