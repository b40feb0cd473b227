"""Lazy curves: a mapping whose curves are computed at their first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import xarray as xr


class LazyCurves(Mapping[str, xr.DataArray]):
    """Curves by name, each given as an array or as a function that computes it once.

    >>> def gap():
    ...     print("computed now")
    ...     return xr.DataArray([0.5, 0.25], dims="time")
    >>> curves = LazyCurves({"loss_gap": gap})
    >>> list(curves)
    ['loss_gap']
    >>> curves["loss_gap"].values
    computed now
    array([0.5 , 0.25])
    >>> curves["loss_gap"].values
    array([0.5 , 0.25])

    A function may be called twice by two threads at once, so it should always return the same values.
    """

    __slots__ = ("_curves",)

    def __init__(self, curves: Mapping[str, xr.DataArray | Callable[[], xr.DataArray]]) -> None:
        self._curves = dict(curves)

    def __getitem__(self, name: str) -> xr.DataArray:
        found = self._curves[name]
        if not isinstance(found, xr.DataArray):
            found = self._curves[name] = found()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._curves

    def __iter__(self) -> Iterator[str]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def changed(self, change: Callable[[str, xr.DataArray], xr.DataArray]) -> LazyCurves:
        """Return the curves after `change(name, curve)`, which is called at the first use of a curve."""

        def make(name: str) -> xr.DataArray:
            return change(name, self[name])

        return LazyCurves({name: partial(make, name) for name in self})
