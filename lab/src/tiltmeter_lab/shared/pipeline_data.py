"""pipeline_data: the three data sets of the pipeline atlas, each with two groups."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import tiltmeter as tm

DATA_SETS = ("mixture", "digits", "adult")
#: Inputs, training points and held-out points of each group of the mixture; people taken from each part of Adult.
MIXTURE_D, MIXTURE_POINTS, MIXTURE_LOOK, PEOPLE = 20, 600, 1000, 2000


@lru_cache(maxsize=4)
def pipeline_data(name: str, share: float, variance: float) -> tuple[tm.GroupedData, tm.GroupedData]:
    """Training and held-out points with labels -1 and +1; the better represented group first.

    `share` is that of the first group, `variance` that of the second over that of the first; Adult has its own.
    """
    if name == "mixture":
        problem = tm.teacher_mixture(rho=share, shift=0.2, variance=(1.0, float(variance)), overlap=0.5)
        even = dict.fromkeys(problem.groups, 1.0)
        train = tm.theory.samples(problem, MIXTURE_D, MIXTURE_POINTS, 0)
        held_out = tm.theory.samples(problem, MIXTURE_D, MIXTURE_LOOK, 1, proportions=even, paired=True)
        groups = tuple(map(str, problem.groups))
    elif name == "digits":
        train, held_out = tm.data.digits(share, (1.0, float(variance) ** 0.5), labels="large")
        groups = ("upright", "turned")
    elif name == "adult":
        train, held_out = _adult()
        groups = ("Male", "Female")
    else:
        raise KeyError(f"No data set {name!r}. There are: {', '.join(DATA_SETS)}.")
    return _ordered(train, groups), _ordered(held_out, groups)


def _adult() -> tuple[tm.GroupedData, tm.GroupedData]:

    parts = []
    for seed, part in enumerate(tm.data.adult()):
        some = np.random.default_rng(seed).choice(len(part), PEOPLE, False)
        parts.append(tm.GroupedData(np.asarray(part.x)[some], 2.0 * np.asarray(part.y)[some] - 1.0, _names(part)[some]))
    return parts[0], parts[1]


def _ordered(data: tm.GroupedData, groups: tuple[str, ...]) -> tm.GroupedData:
    return tm.GroupedData(np.asarray(data.x, dtype=np.float32), data.y, _names(data), groups=list(groups))


def _names(data: tm.GroupedData) -> np.ndarray:
    """The group of every point."""
    return np.asarray(np.array([str(group) for group in data.groups])[data.codes])
