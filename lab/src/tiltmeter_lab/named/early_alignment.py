"""early-alignment: before the loss moves, the neurons of a tiny network turn to four directions, whatever the width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import mean_claim, share_claim
from tiltmeter_lab.shared.symmetric_network import clusters_of, descend, extremes_of, network, steps_to

TITLE = "Neurons of a tiny two-layer network turn to four directions before the loss moves, whatever its width"
PAPER = "Tsoy and Konstantinov, Simplicity bias of two-layer networks beyond linearly separable data, ICML 2024"
NEEDS: tuple[str, ...] = ()
#: The angles at which abs(G) is largest for the symmetric clusters, by symmetry.
AXES = (0.0, 90.0, 180.0, 270.0)


@dataclass(frozen=True)
class Setting:
    """Widths and initial scales; `reached` is the sum of sizes at which alignment is read, while scores are small."""

    seeds: int = 3
    widths: tuple[int, ...] = (50, 400)
    d: int = 2
    points: int = 16
    scale: float = 1e-4
    large: float = 2.0
    lr: float = 1.0
    reached: float = 0.1
    steps_large: int = 100


QUICK = Setting()
FULL = Setting(seeds=10, widths=(50, 400, 4096), points=32, scale=1e-6, lr=0.25, steps_large=2000)


def run(setting: Setting, keep: Keep) -> Runs:
    """One run per width, one from a large initialisation, and G itself over angles."""
    runs = {"G": keep("G", lambda: _pull(setting))}
    for width in setting.widths:
        name = f"width-{width}"
        runs[name] = keep(name, lambda width=width: _trained(setting, width, setting.scale, None))  # type: ignore[misc]
    narrow = setting.widths[0]
    runs["large"] = keep("large", lambda: _trained(setting, narrow, setting.large, setting.steps_large))
    return runs


def _trained(setting: Setting, width: int, scale: float, steps: int | None) -> tm.Trajectory:
    seeds = range(setting.seeds)
    data = [clusters_of(setting.d, setting.points, seed) for seed in seeds]
    nets = [network(setting.d, width, scale, seed) for seed in seeds]
    if steps is None:  # the same for all seeds, so that they can be stacked
        needed = [steps_to(setting.reached, nets[i], extremes_of(data[i]).rate, setting.lr) for i in seeds]
        steps = round(sum(needed) / len(needed))
    return tm.stack([descend(nets[i], data[i], setting.lr, steps, tm.record.log_spaced(10), i) for i in seeds])


def _pull(setting: Setting) -> tm.Trajectory:
    """G over angles (in the plane of the first two axes), and the angles of its extremes nearest to the axes."""
    angle = np.arange(0.0, 360.0, 1.0)
    curves, peaks = [], []
    for seed in range(setting.seeds):
        data = clusters_of(setting.d, setting.points, seed)
        v = np.zeros((len(angle), setting.d))
        v[:, 0], v[:, 1] = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        curves.append(lab.measures.Pull(data.x, data.y / 2.0)(v))
        found = extremes_of(data)
        degrees = np.degrees(np.arctan2(found.direction[:, 1], found.direction[:, 0])) % 360.0
        away = np.abs((degrees - np.asarray(AXES)[:, None] + 180.0) % 360.0 - 180.0)
        peaks.append([len(degrees), away.min(0).max(), found.rate])
    seeds = list(range(setting.seeds))
    pull = xr.DataArray(
        np.stack(curves)[None],
        dims=("time", "seed", "angle"),
        coords={"time": [0], "seed": seeds, "angle": angle},
        attrs={"long_name": "G, the first pull on a neuron"},
    )
    facts = xr.DataArray(
        np.asarray(peaks)[None],
        dims=("time", "seed", "fact"),
        coords={"time": [0], "seed": seeds, "fact": ["extremes", "degrees off the axes", "rate"]},
    )
    return tm.Trajectory({"pull": pull, "extremes": facts}, "step", tm.record.Origin("theory", seeds=tuple(seeds)))


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The published findings, each with its verdict."""
    facts = runs["G"]["extremes"].isel(time=0)
    wide = {name: run for name, run in runs.items() if name.startswith("width-")}
    ends = {name: run.replace({c: _last(run[c]) for c in run}) for name, run in wide.items()}
    # Of every seed, the worst of all widths.
    four = np.all([run["directions"] == len(AXES) for run in ends.values()], axis=0)
    aligned = np.min([run["alignment"] for run in ends.values()], axis=0)
    moved = np.max([1.0 - run["loss"].mean("group") / np.log(2.0) for run in ends.values()], axis=0)
    degrees = facts.sel(fact="degrees off the axes") + abs(facts.sel(fact="extremes") - len(AXES))
    return (
        Claim(
            "G is largest in absolute value on the axes alone",
            float(degrees.max()),
            "degrees between its extremes and the axes (and extremes too many)",
            1e-4,
            rule="at most",
            error=0.0,  # G is computed exactly, for the points of every seed
            seeds=facts.sizes["seed"],
        ),
        share_claim(
            f"Prominent neurons have exactly four directions with signs, at widths {', '.join(_widths(wide))}",
            four,
            "share of seeds in which networks of all widths do",
        ),
        mean_claim(
            "They point where G is extreme for their sign",
            aligned,
            "mean cosine, at the width where it is smallest, mean over seeds",
            0.99,
            f"At the start it is {float(next(iter(wide.values()))['alignment'].isel(time=0).mean()):.2f}.",
        ),
        mean_claim(
            "The loss has hardly moved by then",
            moved,
            "share of the initial loss gone, at the width where it is largest, mean over seeds",
            0.1,
            rule="at most",
        ),
        mean_claim(
            "From a large initialisation neurons stay spread out, though the data are fitted",
            _last(runs["large"]["condensation"]),
            "mean share of size in four clusters",
            0.5,
            f"From a small one it is {min(float(run['condensation'].min()) for run in ends.values()):.2f}.",
            rule="at most",
        ),
    )


def _last(curve: xr.DataArray) -> xr.DataArray:
    return curve.isel(time=[-1])


def _widths(wide: Mapping[str, tm.Trajectory]) -> list[str]:
    return [name.removeprefix("width-") for name in wide]


def pictures(runs: Runs) -> Mapping[str, Any]:
    """G over angles, and the alignment of every width over time."""

    chosen = [name for name in runs if name != "G"]
    labels = [name.replace("-", " ") if name != "large" else "large initial weights" for name in chosen]
    return {
        "The pull on a neuron by its direction": lab.plot.angles(runs["G"]["pull"].isel(time=0)),
        "Alignment with the extremes of G": tm.plot.curves(
            *(runs[name] for name in chosen), curve="alignment", labels=labels
        ),
        "Directions of prominent neurons": tm.plot.curves(
            *(runs[name] for name in chosen), curve="directions", labels=labels
        ),
    }
