"""problem_data: points of a [problem] of the theory, to train networks on: [data] source = "problem"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tiltmeter.cli.options import build_problem
from tiltmeter.cli.toml_schema import check_keys
from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.samples import samples

#: Held-out points of all groups together, the same number of each.
LOOK = 4000


def problem_data(given: Mapping[str, Any], problem: Mapping[str, Any]) -> tuple[GroupedData, GroupedData]:
    """`points` examples in `d` dimensions, and `look` others, in one world; labels -1 and +1, or classes 0, 1, ...

    >>> train, look = problem_data({"d": 20, "points": 100, "look": 60}, {"classes": 3, "rho": 0.7})
    >>> train.sizes, look.sizes, train.labels
    ({'+': 70, '-': 30}, {'+': 30, '-': 30}, array([0, 1, 2]))
    """
    check_keys(given, ("source", "d", "points", "look", "seed"), '[data] of source = "problem"')
    if not problem:
        raise KeyError('[data] source = "problem" needs a table [problem], such as classes = 3 and rho = 0.7.')
    for name in ("d", "points"):
        if name not in given:
            raise KeyError(f'[data] of source = "problem" needs `{name}`.')
    look = given.get("look", LOOK)
    if look != int(look) or look < 1:
        raise ValueError(f'[data] look should be a number of points with source = "problem". Found look = {look:g}.')
    built, seed = build_problem(problem), given.get("seed", 0)
    even = dict.fromkeys(built.groups, 1.0)
    return (
        samples(built, given["d"], given["points"], seed=2 * seed),
        samples(built, given["d"], int(look), seed=2 * seed + 1, proportions=even),
    )
