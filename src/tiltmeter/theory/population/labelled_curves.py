"""From arrays of overlaps to labelled curves: which curves exist, and from what each is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.names import described
from tiltmeter.record.trajectory import LazyCurves
from tiltmeter.theory.population.fairness import disparate_impact, equalised_odds, gap
from tiltmeter.theory.population.rates import Rates, rates
from tiltmeter.theory.problem.sgd_arrays import Parameters


@dataclass(frozen=True)
class OverlapCurves:
    """M, R and loss have shape (N, T, G); Q and bias have shape (N, T)."""

    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    bias: np.ndarray
    loss: np.ndarray

    @classmethod
    def empty(cls, points: int, times: int, groups: int) -> OverlapCurves:
        per_group, single = (points, times, groups), (points, times)
        return cls(np.empty(per_group), np.empty(per_group), np.empty(single), np.empty(single), np.empty(per_group))

    def blank(self, where: np.ndarray) -> None:
        """Set the grid points `where` to NaN."""
        for array in (self.M, self.R, self.Q, self.bias, self.loss):
            array[where] = np.nan


def losses(par: Parameters, M: np.ndarray, R: np.ndarray, Q: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Half squared error per group from overlaps of shapes (N, T, G) and (N, T)."""
    score = M + bias[:, :, None]
    m, D, reach = (x[:, None, :] for x in (par.m, par.D, np.sqrt(par.D) * par.g))
    return np.asarray(0.5 * (score**2 + D * Q[:, :, None] + 1.0 - 2.0 * (m * score + reach * R)))


OVERLAPS = ("M", "R", "Q")
RATES = ("error", "positive_rate", "tpr", "fpr", "ppv")
GAPS = tuple(f"{name}_gap" for name in ("loss", *RATES))
EVERY = ("loss", *RATES, "risk", *OVERLAPS, *GAPS, "equalised_odds", "disparate_impact")

#: Values of shape (N, T, ...) and the names of the dimensions after N and T.
Values: TypeAlias = tuple[np.ndarray, tuple[str, ...]]
#: By the name of their curve, those that take time as functions.
Arrays: TypeAlias = Mapping[str, Values | Callable[[], Values]]


def chosen_names(curves: Iterable[str] | None, train_bias: bool, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The requested names, checked; None means all: those of every student, and `more`."""
    every = (*EVERY, *(("student_bias",) if train_bias else ()), *more)
    if curves is None:
        return every
    if isinstance(curves, str):
        curves = (curves,)
    wanted = tuple(dict.fromkeys(curves))
    for name in wanted:
        if name not in every:
            raise KeyError(f"There is no curve {name!r}. There are: {', '.join(every)}.")
    return wanted


def label_curves(
    par: Parameters, overlaps: OverlapCurves, times: np.ndarray, names: tuple[str, ...], more: Arrays | None = None
) -> LazyCurves:
    """The named curves of a linear student, `more` among them; derived curves are computed only when they are read."""

    @cache
    def found() -> Rates:
        return rates(overlaps.M, overlaps.R, overlaps.Q, overlaps.bias, par.D, par.a)

    arrays: dict[str, Values | Callable[[], Values]] = {
        "loss": (overlaps.loss, ("group",)),
        "M": (overlaps.M, ("group",)),
        "R": (overlaps.R, ("group",)),
        "Q": (overlaps.Q, ()),
        "student_bias": (overlaps.bias, ()),
        **{name: partial(one_rate, found, name) for name in RATES},
        **(more or {}),
    }
    return label_arrays(par, arrays, times, names)


def one_rate(found: Callable[[], Rates], name: str) -> Values:
    """One of several rates that are computed together."""
    return getattr(found(), name), ("group",)


def label_arrays(par: Parameters, arrays: Arrays, times: np.ndarray, names: tuple[str, ...]) -> LazyCurves:
    """The named curves with their dimensions, and those that compare groups, from losses and rates."""

    def values_of(name: str) -> Values:
        found = arrays[name]
        return found() if callable(found) else found

    def labelled(name: str) -> xr.DataArray:
        values, dims = values_of(name)
        return par.label(values, *dims, time=times)

    def made(name: str) -> xr.DataArray:
        match name:
            case "risk":
                curve = par.label(np.einsum("ntg,ng->nt", values_of("loss")[0], par.prior), time=times)
            case "disparate_impact":
                curve = disparate_impact(labelled("positive_rate"))
            case "equalised_odds":
                curve = equalised_odds(labelled("tpr"), labelled("fpr"))
            case _ if name in GAPS:
                curve = gap(labelled(name.removesuffix("_gap")))
            case _:
                curve = labelled(name)
        curve.values.flags.writeable = False  # nothing else refers to these arrays, so a Trajectory need not copy them
        return described(name, curve)

    def waits(name: str) -> bool:
        return name not in arrays or callable(arrays[name])

    return LazyCurves({name: partial(made, name) if waits(name) else made(name) for name in names})
