"""`tiltmeter equilibrium`: the fully trained model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from cyclopts import Parameter

from tiltmeter.cli.show import draw
from tiltmeter.cli.terminal import Json, Save, Switch, To, print_json, print_rows
from tiltmeter.losses import Hinge, Logistic, Loss, Square
from tiltmeter.record import save as save_run
from tiltmeter.record.labelled import values_to_json
from tiltmeter.shown_text import percent
from tiltmeter.theory.cli.options import Problem, SGDOptions, resolve
from tiltmeter.theory.dynamics.equilibrium import at_equilibrium
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.objective import Objective

LOSSES: dict[str, Loss] = {"square": Square(), "logistic": Logistic(), "hinge": Hinge()}
#: Group curves in the table.
SHOWN = ("error", "positive_rate", "tpr", "loss", "training_loss")


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class ObjectiveOptions:
    """The objective that is minimised."""

    loss: Literal["square", "logistic", "hinge"] = "logistic"
    "The loss."
    samples: tuple[float, ...] = (2.0,)
    "Examples per dimension; several give a curve."
    ridge: float = 0.1
    "Weight of |W|^2 / 2 (scikit-learn's 1 / C on inputs x / sqrt(d))."
    weights: tuple[float, float] | None = None
    "Loss weights of + and -."
    coupling: float | None = None
    "One student per group, with this elastic coupling between them."


def equilibrium(
    problem: Problem = None,
    objective: ObjectiveOptions | None = None,
    *,
    config: Path | None = None,
    no_bias: Switch = False,
    to: To = None,
    save: Save = (),
    json: Json = False,
) -> None:
    """Error of each group for the fully trained model, by number of samples, loss and weights.

    Parameters
    ----------
    config
        A TOML file with a table [problem]; options given here override it.
    no_bias
        Do not train the bias of the student.
    """
    # The problem has the same options as in other verbs; the learning rate is not used, so any value works.
    mixture = resolve(problem, SGDOptions(lr=0.1), None, config).problem
    if isinstance(mixture, ClassMixture):
        raise ValueError("`equilibrium` is for two labels. With several classes use `predict` up to a late time.")
    chosen = ObjectiveOptions() if objective is None else objective
    found = at_equilibrium(mixture, _objective(chosen, mixture, not no_bias))
    if to is not None:
        save_run(found, to)
        print(f"Saved to {to}", file=sys.stderr)
    if save:
        _draw(found, save)
    tell(found, json)


def tell(found: xr.Dataset, json: bool) -> None:
    """Print a dataset of trained students: JSON, or the sentence and then the table."""
    if json:
        print_json(_to_json(found))
        return
    print(sentence(found))
    groups = found.coords["group"].values.tolist()
    if "samples" in found["error"].dims:
        heads = ["samples", *(f"{name} {group}" for name in SHOWN[:2] for group in groups)]
        columns = [found[name].transpose("samples", "group").values.T for name in SHOWN[:2]]
        values = np.concatenate(columns).T
        labels = [f"{samples:.4g}" for samples in found.coords["samples"].values]
    else:
        heads = ["group", *SHOWN]
        values = np.stack([found[name].values for name in SHOWN], axis=1)
        labels = list(map(str, groups))
    rows = [[label, *(f"{value:.4f}" for value in row)] for label, row in zip(labels, values, strict=True)]
    print_rows(heads, rows, ["group"])


def _objective(chosen: ObjectiveOptions, mixture: Mixture, bias: bool) -> Objective:
    weights = None
    if chosen.weights is not None:
        if len(mixture.groups) != 2:
            raise ValueError(f"`weights` gives two numbers, but there are {len(mixture.groups)} groups.")
        weights = dict(zip(mixture.groups, chosen.weights, strict=True))
    samples: Any = chosen.samples[0] if len(chosen.samples) == 1 else ("samples", list(chosen.samples))
    return Objective(LOSSES[chosen.loss], samples, chosen.ridge, weights, bias, chosen.coupling)


def sentence(found: xr.Dataset) -> str:
    """Which group is worse off, by how much, and how that changes with the samples."""
    error = found["error"] if "samples" in found["error"].dims else found["error"].expand_dims("samples")
    groups = error.coords["group"].values.tolist()
    parts = []
    for n in (0, -1) if error.sizes["samples"] > 1 else (0,):
        values = error.isel(samples=n).values
        worst, best = int(np.argmax(values)), int(np.argmin(values))
        at = f" at samples = {float(error.coords['samples'].values[n]):g}" if "samples" in error.coords else ""
        if values[worst] - values[best] < 5e-5:
            parts.append(f"all groups are wrong {percent(values[best], 1)} of the time{at}")
        else:
            parts.append(
                f"{groups[worst]} is wrong {percent(values[worst], 1)} of the time, "
                f"{groups[best]} {percent(values[best], 1)}{at}"
            )
    text = ", and ".join(parts) + "."
    return text[0].upper() + text[1:]


def _to_json(found: xr.Dataset) -> dict[str, Any]:
    curves = {
        str(name): {"dims": [str(d) for d in curve.dims], "values": values_to_json(curve.values)}
        for name, curve in found.data_vars.items()
    }
    samples = found.coords["samples"].values.tolist() if "samples" in found.coords else None
    return {"sentence": sentence(found), "samples": samples, "curves": curves, "origin": found.attrs["origin"]}


def _draw(found: xr.Dataset, paths: tuple[Path, ...]) -> None:
    if "samples" not in found.dims:
        raise ValueError("A picture needs several samples, as in --samples 0.5 --samples 2 --samples 8.")
    from tiltmeter.theory.plot import equilibrium_sweep

    draw(equilibrium_sweep(found, curves=("error", "error_gap")), paths)
