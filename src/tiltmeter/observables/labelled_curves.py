"""From arrays of overlaps to labelled curves: which curves exist, and what each is computed from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from tiltmeter.names import described
from tiltmeter.observables.fairness import disparate_impact, equalised_odds, gap
from tiltmeter.observables.overlaps import OverlapCurves
from tiltmeter.observables.rates import rates
from tiltmeter.parameters import Parameters

OVERLAPS = ("M", "R", "Q")
RATES = ("error", "positive_rate", "tpr", "fpr", "ppv")
GAPS = tuple(f"{name}_gap" for name in ("loss", *RATES))
EVERY = ("loss", *RATES, "risk", *OVERLAPS, *GAPS, "equalised_odds", "disparate_impact")


def chosen_names(curves: Iterable[str] | None, train_bias: bool) -> tuple[str, ...]:
    """The names asked for, checked; None means all."""
    every = (*EVERY, "student_bias") if train_bias else EVERY
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
    par: Parameters, overlaps: OverlapCurves, times: np.ndarray, names: tuple[str, ...]
) -> dict[str, xr.DataArray]:
    """The named curves with their dimensions; rates are computed only if one of them is wanted."""
    raw: dict[str, xr.DataArray] = {
        "loss": par.label(overlaps.loss, "group", time=times),
        "M": par.label(overlaps.M, "group", time=times),
        "R": par.label(overlaps.R, "group", time=times),
        "Q": par.label(overlaps.Q, time=times),
        "student_bias": par.label(overlaps.bias, time=times),
    }
    if "risk" in names:
        raw["risk"] = par.label(np.einsum("ntg,ng->nt", overlaps.loss, par.prior), time=times)
    if set(names) - {*raw, "loss_gap"}:
        found = rates(overlaps.M, overlaps.R, overlaps.Q, overlaps.bias, par.D, par.a)
        raw.update({name: par.label(getattr(found, name), "group", time=times) for name in RATES})
    for name in names:
        if name == "disparate_impact":
            raw[name] = disparate_impact(raw["positive_rate"])
        elif name == "equalised_odds":
            raw[name] = equalised_odds(raw["tpr"], raw["fpr"])
        elif name in GAPS:
            raw[name] = gap(raw[name.removesuffix("_gap")])
    return {name: described(name, raw[name]) for name in names}
