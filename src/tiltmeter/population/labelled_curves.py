"""From arrays of overlaps to labelled curves: which curves exist, and what each is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
import xarray as xr

from tiltmeter.names import described
from tiltmeter.population.fairness import disparate_impact, equalised_odds, gap
from tiltmeter.population.overlap_curves import OverlapCurves
from tiltmeter.population.rates import rates
from tiltmeter.problem.sgd_arrays import Parameters

OVERLAPS = ("M", "R", "Q")
RATES = ("error", "positive_rate", "tpr", "fpr", "ppv")
GAPS = tuple(f"{name}_gap" for name in ("loss", *RATES))
EVERY = ("loss", *RATES, "risk", *OVERLAPS, *GAPS, "equalised_odds", "disparate_impact")

#: Values of shape (N, T, ...) and the names of the dimensions after N and T.
Arrays: TypeAlias = Mapping[str, tuple[np.ndarray, tuple[str, ...]]]


def chosen_names(curves: Iterable[str] | None, train_bias: bool, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The names asked for, checked; None means all: those of every student, and `more`."""
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


def need_rates(names: Iterable[str]) -> bool:
    """Whether one of these curves is made of rates."""
    made_of_rates = {*RATES, *GAPS, "equalised_odds", "disparate_impact"} - {"loss_gap"}
    return not made_of_rates.isdisjoint(names)


def label_curves(
    par: Parameters, overlaps: OverlapCurves, times: np.ndarray, names: tuple[str, ...]
) -> dict[str, xr.DataArray]:
    """The named curves of a linear student; rates are computed only if one of them is wanted."""
    arrays: dict[str, tuple[np.ndarray, tuple[str, ...]]] = {
        "loss": (overlaps.loss, ("group",)),
        "M": (overlaps.M, ("group",)),
        "R": (overlaps.R, ("group",)),
        "Q": (overlaps.Q, ()),
        "student_bias": (overlaps.bias, ()),
    }
    if need_rates(names):
        found = rates(overlaps.M, overlaps.R, overlaps.Q, overlaps.bias, par.D, par.a)
        arrays.update({name: (getattr(found, name), ("group",)) for name in RATES})
    return label_arrays(par, arrays, times, names)


def label_arrays(par: Parameters, arrays: Arrays, times: np.ndarray, names: tuple[str, ...]) -> dict[str, xr.DataArray]:
    """The named curves with their dimensions, and what is made of several groups, from losses and rates."""

    def labelled(name: str) -> xr.DataArray:
        match name:
            case "risk":
                return par.label(np.einsum("ntg,ng->nt", arrays["loss"][0], par.prior), time=times)
            case "disparate_impact":
                return disparate_impact(labelled("positive_rate"))
            case "equalised_odds":
                return equalised_odds(labelled("tpr"), labelled("fpr"))
            case _ if name in GAPS:
                return gap(labelled(name.removesuffix("_gap")))
        values, dims = arrays[name]
        return par.label(values, *dims, time=times)

    curves = {name: described(name, labelled(name)) for name in names}
    for curve in curves.values():
        curve.values.flags.writeable = False  # nobody else holds these arrays, so a Trajectory need not copy them
    return curves
