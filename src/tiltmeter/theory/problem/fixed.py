"""Fixed: a training set that is drawn once and used many times."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.record.labelled import (
    JSON,
    Number,
    array_from_json,
    array_to_json,
    flat,
    label_from_json,
    label_to_json,
    labelled,
)
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.sgd_arrays import Parameters, parameters


@dataclass(frozen=True, eq=False)
class Fixed:
    """n = samples * d examples; a share `flips` of each group has the wrong label in training, never in the test.

    >>> Fixed(samples=2.0, flips={"+": 0.1}).epochs(3)
    6.0

    Batches of `SGD` use the set in a new random order in every epoch, as data loaders do; with `replace` they are drawn
    from all of it at every step. One epoch with batch 1 lasts t = samples. Numbers may be labelled grids.

    Args:
        samples: Training examples per dimension, n / d; may be a labelled grid.
        flips: Share of wrong training labels in each group; None: none.
        replace: Whether batches are drawn from the whole set at every step, instead of in shuffled epochs.
    """

    samples: Number
    flips: Mapping[Hashable, Number] | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        samples = labelled(self.samples, "samples")
        if not (samples.values > 0).all():
            raise ValueError(f"`samples` should be positive. Found samples = {samples.values.min():g}.")
        put(self, "samples", float(samples) if samples.ndim == 0 else samples)
        if not isinstance(self.replace, bool):
            raise TypeError(f"`replace` should be True or False. Found replace = {self.replace!r}.")
        if self.flips is None:
            return
        if not isinstance(self.flips, Mapping) or not self.flips:
            raise TypeError(f"`flips` should map groups to shares, as in {{'-': 0.1}}. Found {self.flips!r}.")
        put(self, "flips", {group: _share(value, f"flips[{group!r}]") for group, value in self.flips.items()})

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Fixed) else NotImplemented

    def __hash__(self) -> int:
        if any(isinstance(number, xr.DataArray) for number in (self.samples, *(self.flips or {}).values())):
            raise TypeError("A Fixed over a grid of values is unhashable.")
        return hash(repr(self.to_json()))

    def epochs(self, count: float, batch: int = 1) -> Any:
        """The time t = steps/d after `count` epochs."""
        return count * self.samples / batch  # type: ignore[operator]

    def size(self, d: int) -> int:
        """The number of examples in dimension d."""
        return max(1, round(float(self.samples) * d))  # type: ignore[arg-type]

    def shares(self, groups: tuple[Hashable, ...]) -> list[Any]:
        """The share of wrong labels of each group; the default is none."""
        given = self.flips or {}
        for group in given:
            if group not in groups:
                known = ", ".join(map(repr, groups))
                raise KeyError(f"`flips` names the unknown group {group!r}. There are: {known}.")
        return [given.get(group, 0.0) for group in groups]

    def to_json(self) -> dict[str, JSON]:
        flips: JSON = None
        if self.flips is not None:
            flips = [[label_to_json(group), _to_json(value)] for group, value in self.flips.items()]
        return {"data": "fixed", "samples": _to_json(self.samples), "flips": flips, "replace": self.replace}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Fixed:
        """The value written by `to_json`."""
        flips = value["flips"]
        if flips is not None:
            flips = {label_from_json(group): _from_json(share) for group, share in flips}
        return cls(_from_json(value["samples"]), flips, value["replace"])


def _share(value: Any, name: str) -> float | xr.DataArray:
    array = labelled(value, name)
    if not ((array.values >= 0) & (array.values <= 1)).all():
        bad = array.values[(array.values < 0) | (array.values > 1)].flat[0]
        raise ValueError(f"`{name}` should lie between 0 and 1. Found {name} = {bad:g}.")
    return float(array) if array.ndim == 0 else array


def _to_json(value: Any) -> JSON:
    return array_to_json(value) if isinstance(value, xr.DataArray) else float(value)


def _from_json(value: Any) -> Any:
    return array_from_json(value) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class FixedParameters:
    """`par` with what the training set adds, over N grid points and G groups.

    alpha: examples per dimension; f: share of wrong labels; m, reach: E[y] and sqrt(D) E[dy/dnu] of the labels that
    are trained on (those of the test are in `par`).
    """

    par: Parameters
    alpha: np.ndarray
    f: np.ndarray
    m: np.ndarray
    reach: np.ndarray

    @property
    def size(self) -> int:
        return self.par.size

    @property
    def tau(self) -> np.ndarray:
        """s_g D_g: what one example of a group adds to the Hessian, per direction."""
        return np.asarray(self.par.s * self.par.D)

    @property
    def started(self) -> bool:
        """Whether the student starts anywhere but at zero."""
        par = self.par
        return bool(par.Q0.any() or par.M0.any() or par.R0.any() or par.bias0.any())


def fixed_parameters(problem: Mixture, training: SGD | Flow | Descent, data: Fixed) -> FixedParameters:
    """Flatten a problem, its training and its data over their common grid."""
    sgd = training if isinstance(training, SGD) else training.plain()
    if sgd.interventions:
        names = ", ".join(type(law).__name__ for law in sgd.interventions)
        drawn = any(getattr(law, "by", None) == "draws" for law in sgd.interventions)
        weigh = ' and by="weights" (a fixed set leaves nothing to draw)' if drawn else ""
        raise ValueError(
            f"There is no theory of {names} on a fixed set. Use `simulate` with the same data, method=Direct(){weigh}."
        )
    groups = problem.groups if isinstance(problem, Mixture) else ()
    shares = data.shares(groups) if isinstance(problem, Mixture) else []
    more = [value for value in (data.samples, *shares) if isinstance(value, xr.DataArray)]
    par = parameters(problem, sgd, more)
    f = np.stack([flat(share, par.grid) for share in shares], axis=1)
    kept = 1.0 - 2.0 * f
    if par.bias0.any() and not par.train_bias:
        raise ValueError("`start` gives a bias that is not trained. On a fixed set, pass train_bias=True with it.")
    return FixedParameters(par, flat(data.samples, par.grid), f, kept * par.m, kept * np.sqrt(par.D) * par.g)
