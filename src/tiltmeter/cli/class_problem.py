"""class_problem: a problem of several classes from the keys of [problem] or the options of the same names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tiltmeter.cli.toml_schema import check_keys
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.class_mixture_of_two import class_mixture

#: Keys of two labels that also make sense for several classes.
SHARED = ("rho", "shift", "variance", "overlap")
#: Keys that only several classes have.
OWN = ("classes", "similarity", "swapped", "class_bias", "softmax")
#: Keys of any groups and classes, by vectors or by overlaps.
BY_VECTORS = ("weight", "variance", "means", "teachers", "label_bias")
BY_GRAM = ("weight", "variance", "classes", "gram", "label_bias")


def has_classes(given: Mapping[str, Any]) -> bool:
    """Whether the keys describe several classes; keys of classes without classes are refused.

    >>> has_classes({"rho": 0.7, "classes": 3}), has_classes({"rho": 0.7})
    (True, False)
    """
    teachers = given.get("teachers")
    nested = isinstance(teachers, Mapping) and any(isinstance(one, Mapping) for one in teachers.values())
    if "classes" in given or nested:
        return True
    for name in OWN:
        if given.get(name) not in (None, False):
            raise ValueError(f"--{name.replace('_', '-')} needs --classes, as in --classes 3.")
    return False


def class_problem(given: Mapping[str, Any]) -> ClassMixture:
    """Two groups from a few numbers, or any groups and classes from their vectors or overlaps.

    >>> class_problem({"classes": 3, "rho": 0.7, "overlap": 0.5}).classes
    (0, 1, 2)
    """
    given = {name: value for name, value in given.items() if name != "softmax"}
    if "weight" in given:
        if "gram" in given:
            check_keys(given, BY_GRAM, "A problem with `classes` and `gram`")
            names = given.get("classes")
            if not isinstance(names, Sequence) or isinstance(names, str):
                raise ValueError(
                    f'`classes` should list the classes beside `gram`, as ["cat", "dog"]. Found {names!r}.'
                )
            return ClassMixture.from_gram(**_needed(given, "weight", "variance", "gram", "classes"))
        check_keys(given, BY_VECTORS, "A problem with teachers for every class")
        return ClassMixture(**_needed(given, "weight", "variance", "means", "teachers"))
    for name in given:
        if name not in SHARED and name not in OWN:
            raise ValueError(f"--{name.replace('_', '-')} is for two labels; with --classes there are: {_flags()}")
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    if isinstance(known.get("variance"), Mapping):
        raise ValueError("`variance` should be two numbers beside `classes`, or come with `weight` for named groups.")
    return class_mixture(**known)


def _needed(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if name not in given:
            raise KeyError(f"A problem with `weight` and classes also needs `{name}`.")
    return dict(given)


def _flags() -> str:
    return ", ".join(f"--{name}" for name in (*SHARED, "similarity", "swapped", "class-bias", "softmax")) + "."
