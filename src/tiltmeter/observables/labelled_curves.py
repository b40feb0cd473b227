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
    arrays: dict[str, np.ndarray] = {
        "loss": overlaps.loss,
        "M": overlaps.M,
        "R": overlaps.R,
        "Q": overlaps.Q,
        "student_bias": overlaps.bias,
    }
    if "risk" in names:
        arrays["risk"] = np.einsum("ntg,ng->nt", overlaps.loss, par.prior)
    if set(names) - {*arrays, "loss_gap"}:
        found = rates(overlaps.M, overlaps.R, overlaps.Q, overlaps.bias, par.D, par.a)
        arrays.update({name: getattr(found, name) for name in RATES})

    def labelled(name: str) -> xr.DataArray:
        match name:
            case "disparate_impact":
                return disparate_impact(labelled("positive_rate"))
            case "equalised_odds":
                return equalised_odds(labelled("tpr"), labelled("fpr"))
            case _ if name in GAPS:
                return gap(labelled(name.removesuffix("_gap")))
        return par.label(arrays[name], *("group",) * (arrays[name].ndim - 2), time=times)

    return {name: described(name, labelled(name)) for name in names}
