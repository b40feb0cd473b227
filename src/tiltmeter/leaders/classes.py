"""class_leaders: lead changes in problems with classes, between groups and between classes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import xarray as xr

from tiltmeter.leaders.exact import exact_curve
from tiltmeter.leaders.leaders import Leaders, leaders
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.shown_text import NotebookText


@dataclass(frozen=True)
class ClassLeaders(NotebookText):
    """Three kinds of leaders.

    `groups`: between groups, all classes together. `same_class`: of one class between groups, by class. `classes`:
    between the classes of one group, by group.
    """

    groups: Leaders
    same_class: Mapping[Hashable, Leaders]
    classes: Mapping[Hashable, Leaders]

    @property
    def hidden(self) -> tuple[Hashable, ...]:
        """Classes that cross between groups although the groups themselves never do."""
        return () if self.groups.changes else tuple(name for name, led in self.same_class.items() if led.changes)

    def __str__(self) -> str:
        lines = [f"Groups: {self.groups.headline.line}"]
        lines += [f"Class {name} between groups: {led.headline.line}" for name, led in self.same_class.items()]
        lines += [f"Classes within {name}: {led.headline.line}" for name, led in self.classes.items()]
        return "\n".join(lines)


def class_leaders(trajectory: Trajectory, curve: str = "class_loss") -> ClassLeaders:
    """Return the changes of leader between groups, between groups in each class, and between classes in each group.

    >>> from tiltmeter import SGD, predict

    >>> from tiltmeter.theory import class_mixture
    >>> problem = class_mixture(3, rho=0.7, variance=(0.5, 1.0), overlap=0.3)
    >>> theory = predict(problem, SGD(lr=0.2), [0.1, 1.0, 10.0, 100.0], curves=("loss", "class_loss"))
    >>> print(class_leaders(theory).groups.headline.line)
    Group + has the lower loss throughout.

    `curve` has the dimensions `group` and `class`: "class_loss" goes with "loss", "class_accuracy" with "error".

    A class may cross between groups although the groups do not, because other classes outweigh it; `hidden` lists
    these.

    Args:
        trajectory: Run to look at: theory, simulation, forecast or training.
        curve: Curve with the dimensions `group` and `class`, "class_loss" or "class_accuracy".
    """
    whole = {"class_loss": "loss", "class_accuracy": "error"}.get(curve)
    values = trajectory[curve]
    if whole is None or not {"group", "class"} <= set(values.dims):
        raise ValueError(
            f'`class_leaders` is for curves of groups and classes, "class_loss" or "class_accuracy". Found {curve!r}.'
        )
    groups, classes = (values.coords[dim].values.tolist() for dim in ("group", "class"))

    def of_class(values: xr.DataArray, label: Hashable) -> xr.DataArray:
        return values.sel({"class": label}, drop=True)

    def of_group(values: xr.DataArray, group: Hashable) -> xr.DataArray:
        # The classes of one group as if they were groups, to compare them in the same way.
        return values.sel(group=group, drop=True).rename({"class": "group"})

    return ClassLeaders(
        groups=leaders(trajectory, whole),
        same_class={c: leaders(_part(trajectory, curve, partial(of_class, label=c)), curve) for c in classes},
        classes={g: leaders(_part(trajectory, curve, partial(of_group, group=g)), curve) for g in groups},
    )


def _part(trajectory: Trajectory, curve: str, part: Callable[[xr.DataArray], xr.DataArray]) -> Trajectory:
    """Return a trajectory of this part of the curve, with its standard error; exact if the whole is."""
    names = [name for name in (curve, f"{curve}_se") if name in trajectory]
    exact = exact_curve(trajectory, curve) if "seed" not in trajectory[curve].dims else None
    origin = Origin(f"part of {trajectory.origin.source}")  # the part cannot be rebuilt from the Origin

    def evaluate(times: Any, curves: Any = None) -> Trajectory:  # noqa: ARG001
        assert exact is not None
        return Trajectory({curve: part(exact(times))}, trajectory.clock, origin)

    curves = {name: part(trajectory[name]) for name in names}
    return Trajectory(curves, trajectory.clock, origin, None, evaluate if exact is not None else None)
