"""Horizon: the step up to which a forecast can be trusted, and the reason why not beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.notebook_text import NotebookText
from tiltmeter.record import Trajectory
from tiltmeter.record.labelled import JSON

#: Relative change of the kernel, at the forecast weights, that is still accepted.
BENT = 0.5
#: Change of losses and gaps with half the sample, over their range, that is accepted; so are two standard errors.
CHANGED, SURE = 0.2, 2.0
#: Rotation of the kernel, in degrees, that is still accepted.
TURNED = 20.0
#: What is said where the test of the linearisation was not possible.
UNTESTED = "Not tested, as that needs the network: whether it stays near its linearisation; the band assumes it"


@dataclass(frozen=True)
class Horizon(NotebookText):
    """The last step up to which each test trusts the forecast; None: the test finds no problem at any step.

    `linear`: with its weights moved as forecast, the network has nearly the same (centred) kernel. `sample`: half of
    the sample gives nearly the same losses and gaps. `kernel`: a few real steps, extrapolated, show that the kernel
    does not turn far (also None if no real steps were allowed). Only the network can show whether it stays linear:
    without it (see `load_tangent`) `linear` is None and `linear_tested` is False. A test that finds no problem does not
    prove the forecast right.
    """

    steps: int
    linear: float | None = None
    sample: float | None = None
    kernel: float | None = None
    linear_tested: bool = True

    @property
    def step(self) -> float | None:
        """The earliest of them; None if no test finds a problem."""
        known = [value for value in (self.linear, self.sample, self.kernel) if value is not None]
        return min(known) if known else None

    @property
    def reason(self) -> str | None:
        """The test that fails first, in words."""
        whys = {
            "linear": "the network departs from its linearisation",
            "sample": "the forecast depends on the size of the sample",
            "kernel": "the kernel has turned",
        }
        return next((why for name, why in whys.items() if self.step == getattr(self, name) is not None), None)

    def to_json(self) -> dict[str, JSON]:
        return {
            "step": self.step,
            "reason": self.reason,
            "linear": self.linear,
            "sample": self.sample,
            "kernel": self.kernel,
            **({} if self.linear_tested else {"linear_tested": False}),
        }

    def __str__(self) -> str:
        if self.step is None:
            found = f"The tests of the forecast find no problem up to its last step, {self.steps}"
            said = f"{found}; this does not prove it right."
        else:
            said = f"Do not trust the forecast beyond step {spelled(self.step)}: {self.reason}."
        return said if self.linear_tested else f"{said} {UNTESTED}."


def noted_horizon(trajectory: Trajectory) -> Horizon | None:
    """Return the horizon that a forecast has noted, also after `save` and `load`; None for anything else."""
    settings: Mapping[str, Any] = trajectory.origin.settings
    noted = settings.get("horizon")
    if not isinstance(noted, dict) or trajectory.clock != "step":
        return None
    tested = noted.get("linear_tested") is not False
    return Horizon(settings["steps"], noted["linear"], noted["sample"], noted["kernel"], tested)


def noted_step(trajectory: Trajectory) -> float | None:
    """Return the step up to which the tests of a forecast from the kernel trust it; None without limit or tests."""
    found = noted_horizon(trajectory)
    return None if found is None else found.step


def spelled(step: float) -> str:
    """Write a step with three significant figures, never in exponent notation.

    >>> spelled(0.5), spelled(12345.6)
    ('0.5', '12300')
    """
    return f"{float(f'{step:.3g}'):.12g}"


def linear_until(departure: Callable[[int], float], looks: np.ndarray) -> float | None:
    """Return the step at which the departure from the linearisation exceeds `BENT`, by bisection over the looks.

    `departure(i)` costs a forward and a backward pass over the sample, so it is called as seldom as possible. It is
    taken to grow with the displacement of the weights.
    """
    low, high = 0, len(looks) - 1
    found = {high: departure(high)}
    if found[high] <= BENT:
        return None
    found[low] = 0.0
    while high - low > 1:
        middle = (low + high) // 2
        found[middle] = departure(middle)
        low, high = (low, middle) if not found[middle] <= BENT else (middle, high)
    if low == 0:
        return 0.0 if looks[high] <= 1 else float(looks[high]) / 2.0
    if not np.isfinite(found[high]):
        return float(looks[low])
    part = np.clip((BENT - found[low]) / max(found[high] - found[low], 1e-12), 0.0, 1.0)
    return float(np.exp((1 - part) * np.log(looks[low]) + part * np.log(looks[high])))


def sample_until(whole: np.ndarray, half: np.ndarray, error: np.ndarray, looks: np.ndarray) -> float | None:
    """Return the step from which half of the sample gives other losses or gaps; arrays are (steps, groups)."""
    groups = whole.shape[1]
    first = len(looks)
    # Every group alone, and the difference of every pair: errors of two groups may cancel or add up.
    for a, b in [(g, None) for g in range(groups)] + [(g, h) for g in range(groups) for h in range(g + 1, groups)]:
        one, other, noise = (part[:, a] for part in (whole, half, error))
        if b is not None:
            one, other, noise = one - whole[:, b], other - half[:, b], np.hypot(noise, error[:, b])
        sound = one[np.isfinite(one)]
        off = ~(np.abs(one - other) <= np.maximum(SURE * noise, CHANGED * np.ptp(sound)))
        if off.any():
            first = min(first, int(np.argmax(off)))
    return None if first == len(looks) else float(looks[max(0, first - 1)])


def kernel_until(angle: float, real_steps: int, sizes: np.ndarray, looks: np.ndarray) -> float | None:
    """Return the step at which the kernel will have turned by `TURNED` degrees, from its angle after real steps.

    >>> kernel_until(5.0, 10, np.array([0.0, 1.0, 2.0, 8.0]), np.array([0, 10, 20, 80]))
    20.0

    The angle is assumed to be proportional to the displacement of the weights, whose length at every look is in
    `sizes`.
    """
    moved = float(np.interp(real_steps, looks, sizes))
    with np.errstate(invalid="ignore"):
        expected = angle * sizes / moved if moved > 0 else np.full(len(looks), angle)
    off = ~(expected <= TURNED)
    return float(looks[max(0, int(np.argmax(off)) - 1)]) if off.any() else None
