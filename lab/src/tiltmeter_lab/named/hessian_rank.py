"""The rank of the Hessian at interpolation: as many eigenvalues as points times outputs, whatever the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import share_claim
from tiltmeter_lab.shared.random_streams import kept_streams

TITLE = "Where a network fits all points exactly, its Hessian has as many nonzero eigenvalues as there are points"
PAPER = "Sagun, Evci, Güney, Dauphin and Bottou (2018), Empirical analysis of the Hessian of over-parametrized networks"
NEEDS: tuple[str, ...] = ()

#: An eigenvalue counts if it exceeds this part of the largest.
LEVEL = 1e-6


@dataclass(frozen=True)
class Setting:
    """A tanh network, inputs x units + 2 units parameters, on Gaussian points with Gaussian targets."""

    seeds: int = 4
    points: int = 8
    inputs: int = 4
    units: int = 8
    iterations: int = 60


QUICK = Setting()
FULL = replace(QUICK, seeds=32)


def run(setting: Setting, keep: Keep) -> Runs:
    """Spectra of all seeds, fitted and as initialised."""
    return {
        name: keep(name, lambda f=fitted: _spectra(setting, f))  # type: ignore[misc]
        for name, fitted in (("fitted", True), ("as initialised", False))
    }


def spectrum(setting: Setting, seed: int, fitted: bool) -> np.ndarray:
    """Eigenvalues of the Hessian of half squared error, ascending, at zero loss or at the start."""
    torch.manual_seed(seed)
    model = tm.modules.mlp(setting.inputs, (setting.units,), 1, "tanh").double()
    torch.nn.init.zeros_(list(model.parameters())[-1]).requires_grad_(False)  # no offset of the output
    x = torch.randn(setting.points, setting.inputs, dtype=torch.float64)
    y = torch.randn(setting.points, dtype=torch.float64)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if fitted:
        _fit(model, parameters, x, y, setting.iterations)

    def losses(places: Tensor) -> Tensor:
        score: Tensor = model(x[places])[:, 0]
        return 0.5 * (score - y[places]).square()

    unit = torch.eye(sum(parameter.numel() for parameter in parameters), dtype=torch.float64)
    columns = [tm.modules.hessian_times(losses, parameters, torch.arange(len(x)), column) for column in unit]
    return np.asarray(torch.linalg.eigvalsh(torch.stack(columns, 1)).numpy())


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published finding and its control, each with its verdict."""
    fitted, start = (_count(runs[name]) for name in ("fitted", "as initialised"))
    points = int(runs["fitted"].origin.settings["points"])  # type: ignore[arg-type]
    return (
        share_claim(
            "Of the Hessian of a network that fits n points exactly, n eigenvalues are not zero",
            fitted == points,
            f"share of seeds with exactly n = {points}",
        ),
        share_claim(
            "Away from such a fit there are more",
            start > points,
            "share of seeds with more",
            f"The fewest are {int(start.min())}.",
        ),
    )


def pictures(runs: Runs) -> Mapping[str, Any]:
    """Eigenvalues over their largest, in order, of the first seed."""
    rows = [
        {"run": name, "rank": rank + 1, "size": max(abs(value), 1e-18)}
        for name, run in runs.items()
        for rank, value in enumerate(np.sort(np.abs(_shares(run)[0]))[::-1])
    ]
    chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_point(filled=True, size=40)
        .encode(
            x=alt.X("rank:Q", title="rank"),
            y=alt.Y("size:Q", title="eigenvalue over the largest, without sign", scale=alt.Scale(type="log")),
            color=alt.Color("run:N", title=None),
            shape=alt.Shape("run:N", title=None),
        )
    )
    return {"Eigenvalues of the Hessian": chart}


def _fit(model: torch.nn.Module, parameters: list[torch.nn.Parameter], x: Tensor, y: Tensor, iterations: int) -> None:
    """Gauss-Newton steps, shortened far from the solution, until the residuals are rounding."""
    for _ in range(iterations):
        out = model(x)[:, 0]
        rows = [torch.autograd.grad(one, parameters, retain_graph=True) for one in out]
        jacobian = torch.stack([torch.cat([part.reshape(-1) for part in row]) for row in rows])
        residual = (out - y).detach()
        step = torch.linalg.lstsq(jacobian, residual).solution
        step = step * min(1.0, 0.5 / float(step.norm()))
        with torch.no_grad():
            parts = torch.split(step, [p.numel() for p in parameters])
            for parameter, part in zip(parameters, parts, strict=True):
                parameter.sub_(part.reshape(parameter.shape))


def _spectra(setting: Setting, fitted: bool) -> tm.Trajectory:
    with kept_streams():
        found = np.stack([spectrum(setting, seed, fitted) for seed in range(setting.seeds)])
    coords = {"time": [0], "seed": np.arange(setting.seeds), "rank": np.arange(found.shape[1])}
    attrs = {"long_name": "eigenvalue of the Hessian", "better": "neither"}
    curve = xr.DataArray(found[None], dims=("time", "seed", "rank"), coords=coords, attrs=attrs)
    settings = {"points": setting.points, "units": setting.units, "fitted": fitted}
    origin = tm.record.Origin("training", settings=settings, seeds=tuple(range(setting.seeds)))
    return tm.Trajectory({"hessian_spectrum": curve}, "step", origin)


def _shares(run: tm.Trajectory) -> np.ndarray:
    values = run["hessian_spectrum"].isel(time=0).transpose("seed", "rank").values
    return np.asarray(values / np.abs(values).max(1, keepdims=True))


def _count(run: tm.Trajectory) -> np.ndarray:
    return np.asarray((np.abs(_shares(run)) > LEVEL).sum(1))
