"""misnamed: a sentence for an argument that has another name here."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def misnamed(**right: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that answers these wrong names of arguments with the right one.

    >>> @misnamed(colour="color")
    ... def paint(color):
    ...     return color
    >>> paint(colour="red")
    Traceback (most recent call last):
    TypeError: `paint` has no argument `colour`. Did you mean color=?
    """

    def hinting(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name in right:
                    raise TypeError(f"`{function.__name__}` has no argument `{name}`. Did you mean {right[name]}=?")
            return function(*args, **kwargs)

        return call

    return hinting
