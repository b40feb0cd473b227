"""Up-weight or up-sample: the same drift, other noise, and the difference is exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.steered_cases import PROBLEMS, evaluations

TITLE = "Re-weighting and re-sampling have the same drift; weighing a rare group up adds noise"
PAPER = "An, Ying and Zhu, Why resampling outperforms reweighting (2021); theory of this package"
NEEDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Learning rates of the theory, and the size of the simulation."""

    rates: tuple[float, ...] = (0.2, 0.1, 0.05, 0.025, 0.0125)
    d: int = 1000
    seeds: int = 48


QUICK, FULL = Setting(), Setting(d=4000, seeds=128)


def run(setting: Setting, keep: Keep) -> Runs:
    """Balancing both ways over learning rates; identical groups; and simulated students."""
    problem = PROBLEMS["A"][0]
    same = tm.teacher_mixture(rho=0.8, variance=(1.0, 1.0), overlap=1.0)
    rates = ("lr", list(setting.rates))
    times = np.unique(np.rint(np.geomspace(1.0, 20.0, 8) * setting.d)) / setting.d
    found = {}
    for name, by in (("weights", "weights"), ("draws", "draws")):
        law = tm.interventions.Balanced(by=by)  # type: ignore[arg-type]
        found[name] = keep(
            name,
            lambda law=law: tm.predict(  # type: ignore[misc]
                problem, tm.SGD(lr=rates, interventions=(law,)), evaluations(20.0 / setting.rates[-1], 200), ("loss",)
            ),
        )
        found[f"{name}, identical groups"] = keep(
            f"{name}, identical groups",
            lambda law=law: tm.predict(same, tm.SGD(lr=0.2, interventions=(law,)), evaluations(60.0, 100), ("loss",)),  # type: ignore[misc]
        )
        found[f"{name}, simulated"] = keep(
            f"{name}, simulated",
            lambda law=law: tm.simulate(  # type: ignore[misc]
                problem,
                tm.SGD(lr=0.2, interventions=(law,)),
                times,
                setting.d,
                setting.seeds,
                curves=("loss",),
                method=tm.theory.Chain(progress=False),
            ),
        )
    found["plain, identical groups"] = keep(
        "plain, identical groups", lambda: tm.predict(same, tm.SGD(lr=0.2), evaluations(60.0, 100), ("loss",))
    )
    return found


def claims(runs: Runs) -> tuple[Claim, ...]:
    """The difference goes with lr; identical groups feel weights and not draws; the simulation shows the difference."""
    by_rate = (runs["weights"]["loss"] - runs["draws"]["loss"]).pipe(abs).max(("time", "group")).values
    rates = runs["weights"]["loss"].coords["lr"].values
    plain = runs["plain, identical groups"]["loss"]
    off = {by: float(abs(runs[f"{by}, identical groups"]["loss"] - plain).max()) for by in ("weights", "draws")}
    one, two = (runs[f"{by}, simulated"]["loss"].isel(time=-1) for by in ("weights", "draws"))
    seeds = one.sizes["seed"]
    apart = (one.mean("seed") - two.mean("seed")).values
    error = np.sqrt((one.var("seed", ddof=1) + two.var("seed", ddof=1)).values / seeds)
    exact = [
        tm.predict(
            PROBLEMS["A"][0],
            tm.SGD(lr=0.2, interventions=(tm.interventions.Balanced(by=by),)),
            one.coords["time"].values.reshape(1),
            ("loss",),
        )["loss"].values[0]
        for by in ("weights", "draws")
    ]
    return (
        Claim(
            "The difference vanishes with the learning rate",
            float(by_rate[-1] / by_rate[0] / (rates[-1] / rates[0])),
            f"ratio of largest differences at lr = {rates[-1]:g} and {rates[0]:g}, over the ratio of rates",
            1.5,
            f"The largest difference falls from {by_rate[0]:.3g} to {by_rate[-1]:.3g}.",
            rule="at most",
        ),
        Claim(
            "Identical groups are not touched by drawing them equally",
            off["draws"],
            "largest change of a loss",
            1e-9,
            rule="at most",
        ),
        Claim(
            "Identical groups are harmed by weighing them equally", off["weights"], "largest change of a loss", 0.005
        ),
        Claim(
            "Simulated students differ by as much as the theory says",
            float(np.abs((apart - (exact[0] - exact[1])) / error).max()),
            "distance of the difference from the exact one, in standard errors",
            4.0,
            f"Exact difference {exact[0][0] - exact[1][0]:.4f} and {exact[0][1] - exact[1][1]:.4f}, "
            f"simulated {apart[0]:.4f} and {apart[1]:.4f}.",
            rule="at most",
            error=1.0,
            seeds=seeds,
        ),
    )


def pictures(runs: Runs) -> dict[str, Any]:
    """The losses of both groups under either way."""
    from tiltmeter_lab.shared.pictures import lines

    rows = [
        (float(t), float(v), f"{group} by {by}")
        for by in ("weights", "draws")
        for group in ("+", "-")
        for t, v in zip(
            runs[by]["loss"].coords["time"].values[1::3],
            runs[by]["loss"].isel(lr=0).sel(group=group).values[1::3],
            strict=True,
        )
    ]
    return {"Losses at lr = 0.2": lines(rows, "t", "loss", "group and way", log_x=True, zero=False)}
