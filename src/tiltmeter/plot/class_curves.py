"""The curve of every class in a panel of its own."""

from __future__ import annotations

import altair as alt

from tiltmeter.plot.curves import curves
from tiltmeter.plot.theme import (
    curve_words,
    group_name,
    heading,
    large,
)
from tiltmeter.record.trajectory import Trajectory

#: Width and height of a panel.
PANEL = {"width": 250, "height": 210}


def class_curves(trajectory: Trajectory, curve: str = "class_loss", title: str | None = None) -> alt.HConcatChart:
    """The curve of every class in a panel of its own, on one vertical scale; groups have the colours of `plot.curves`.

    >>> from tiltmeter import SGD, predict

    >>> from tiltmeter.theory import class_mixture
    >>> theory = predict(class_mixture(3, rho=0.7), SGD(lr=0.2), [0.1, 1.0, 10.0], curves=("class_loss",))
    >>> len(class_curves(theory).to_dict()["hconcat"])
    3

    It is about the inputs of one class; a class may cross between groups that do not (`class_leaders`).

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        curve: Curve with a dimension `class`.
        title: Text above the picture; None: what it shows.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(f"`plot.class_curves` draws a trajectory. Found {type(trajectory).__name__}.")
    values = trajectory[curve]
    if "class" not in values.dims or "decision" in values.dims:
        raise ValueError(
            f"`plot.class_curves` is for curves of groups and classes, as 'class_loss'. Found {curve!r}: use "
            "`plot.curves`."
        )
    names = [name for name in (curve, f"{curve}_se") if name in trajectory]
    panels = []
    for label in values.coords["class"].values.tolist():
        part = trajectory.replace({name: trajectory[name].sel({"class": label}, drop=True) for name in names})
        panels.append(curves(part, curve=curve, title=f"class {group_name(label)}").properties(**PANEL))
    chart: alt.HConcatChart = alt.hconcat(*panels).resolve_scale(y="shared")
    return chart.properties(title=heading(title or large(f"{curve_words(curve)} of every class over training")))
