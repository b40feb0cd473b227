"""Order parameters: Q, M and R of simulated students against the exact theory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tiltmeter as tm
from tiltmeter_lab.catalogue import Keep, Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.over_seeds import farthest, jackknife_error

TITLE = "The order parameters Q, M and R of simulated students follow the theory"
PAPER = "Jain, Nobahari, Baratin and Sarao Mannelli, Bias in Motion (2024), figure 1"
NEEDS: tuple[str, ...] = ()
SHOWN = ("M", "R", "Q")


@dataclass(frozen=True)
class Setting:
    """Two dimensions, the smaller first, to see how the distance from the limit shrinks."""

    d: tuple[int, int] = (250, 1000)
    seeds: int = 200
    evaluations: int = 40
    until: float = 20.0


QUICK = Setting()
FULL = Setting(d=(500, 2000), seeds=400)


def run(setting: Setting, keep: Keep) -> Runs:
    """The general case of the notes: everything differs between the groups, and weights start at random."""
    problem = tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
    sgd = tm.SGD(lr=0.3, start=tm.theory.starts.Random(1.0))
    # Multiples of 1/d for both dimensions, so that all routes look at the same times.
    small, large = setting.d
    times = np.unique(np.rint(np.geomspace(4.0 / small, setting.until, setting.evaluations) * small)) / small
    runs = {"theory": keep("theory", lambda: tm.predict(problem, sgd, times, (*SHOWN, "loss")))}
    for word, d in (("small", small), ("large", large)):
        simulated = partial(
            tm.simulate,
            problem,
            sgd,
            times,
            d,
            setting.seeds,
            curves=(*SHOWN, "loss"),
            method=tm.theory.Chain(progress=False),
        )
        runs[word] = keep(f"simulation {word}", simulated)
        runs[f"mean {word}"] = keep(f"moments {word}", partial(tm.theory.moments, problem, sgd, times, d))
    return runs


def claims(runs: Runs) -> tuple[Claim, ...]:
    """Agreement within the noise and O(1/d); the mean's distance falls as 1/d, the scatter as 1/sqrt(d)."""
    theory, small, large = runs["theory"], runs["small"], runs["large"]
    d = [int(one.origin.settings["d"]) for one in (small, large)]  # type: ignore[arg-type]
    seeds = len(large.origin.seeds)
    worst = {name: _in_errors(theory, large, name, d[1]) for name in SHOWN}
    name = max(worst, key=lambda one: worst[one][0])
    bias = [max(float(abs(runs[f"mean {word}"][n] - theory[n]).max()) for n in SHOWN) for word in ("small", "large")]
    expected = d[1] / d[0]

    def scatter(places: np.ndarray) -> float:
        """How far the ratio of standard deviations of these seeds is from that of 1/sqrt(d)."""
        spread = [
            np.mean([one[n].isel(seed=places).std("seed", ddof=1).mean() for n in SHOWN]) for one in (small, large)
        ]
        return float(spread[0] / spread[1] / np.sqrt(expected) - 1.0)

    return (
        Claim(
            "Simulated order parameters agree with the theory within the error of finite d",
            worst[name][0],
            f"largest distance of the mean at d = {d[1]}, in units of its standard error + 1/d ({name})",
            4.0,
            rule="at most",
            error=worst[name][1],
            seeds=seeds,
        ),
        Claim(
            "The exact mean at finite d approaches the theory as 1/d",
            abs(bias[0] / bias[1] / expected - 1.0),
            f"deviation from a factor {expected:g} between d = {d[0]} and {d[1]}",
            0.15,
            f"The mean is off by at most {bias[1]:.2g} at d = {d[1]}.",
            rule="at most",
            error=0.0,  # both means are exact
        ),
        Claim(
            "Single runs scatter around it as 1/sqrt(d)",
            abs(scatter(np.arange(seeds))),
            f"deviation from a factor {np.sqrt(expected):.3g} in standard deviation",
            # The standard deviation of n runs is known to 1/sqrt(2 (n - 1)); two of them, at four standard errors.
            4.0 / np.sqrt(seeds - 1.0),
            rule="at most",
            error=float(jackknife_error(scatter, seeds)),
            seeds=seeds,
        ),
    )


def _in_errors(theory: tm.Trajectory, runs: tm.Trajectory, name: str, d: int) -> tuple[float, float]:
    """The largest distance of the mean in units of its standard error + 1/d, and the error of that distance."""
    return farthest(runs[name], theory[name], 1.0 / d)


def pictures(runs: Runs) -> dict[str, Any]:
    """Theory as lines, simulation as marks."""

    return {
        f"{name}, theory and simulation": tm.plot.curves(runs["theory"], runs["large"], curve=name) for name in SHOWN
    }
