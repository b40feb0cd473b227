"""Training and held-out points drawn from the problem of a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiltmeter.cli.toml_file import check_keys
from tiltmeter.data.grouped import GroupedData
from tiltmeter.theory.cli.options import build_problem, class_problem, has_classes
from tiltmeter.theory.samples import samples

#: Held-out points of all groups together, the same number of each.
HELD_OUT = 4000


def problem_data(given: Mapping[str, Any], problem: Mapping[str, Any]) -> tuple[GroupedData, GroupedData]:
    """`points` examples in `d` dimensions, and `held_out` others, in one world; labels -1 and +1, or classes 0, 1, ...

    >>> train, held_out = problem_data({"d": 20, "points": 100, "held_out": 60}, {"classes": 3, "rho": 0.7})
    >>> train.sizes, held_out.sizes, train.labels
    ({'+': 70, '-': 30}, {'+': 30, '-': 30}, array([0, 1, 2]))
    """
    check_keys(given, ("source", "d", "points", "held_out", "seed"), '[data] of source = "problem"')
    if not problem:
        raise KeyError('[data] source = "problem" needs a table [problem], such as classes = 3 and rho = 0.7.')
    for name in ("d", "points"):
        if name not in given:
            raise KeyError(f'[data] of source = "problem" needs `{name}`.')
    held_out = given.get("held_out", HELD_OUT)
    if held_out != int(held_out) or held_out < 1:
        raise ValueError(
            f'[data] held_out should be a number of points with source = "problem". Found held_out = {held_out:g}.'
        )
    built, seed = build_problem(problem), given.get("seed", 0)
    even = dict.fromkeys(built.groups, 1.0)
    return (
        samples(built, given["d"], given["points"], seed=2 * seed),
        samples(built, given["d"], int(held_out), seed=2 * seed + 1, proportions=even),
    )


def classes_of(problem: Mapping[str, Any]) -> int | None:
    """How many classes the problem has; None if it has two labels."""
    return len(class_problem(problem).classes) if has_classes(problem) else None
