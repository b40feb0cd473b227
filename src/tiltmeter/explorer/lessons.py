"""Lessons: steps of predict, reveal and why, one TOML file each."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

#: The order in which they are offered.
NAMES = ("one-crossing", "three-phases", "more-data", "two-clocks", "cost-of-a-cure")


@dataclass(frozen=True)
class Step:
    """One question about one state of the theory page.

    `sentence` is what `phases` says of this state; a test compares the two.
    """

    state: str
    text: str
    question: str
    choices: tuple[str, ...]
    answer: int
    sentence: str
    why: str


@dataclass(frozen=True)
class Lesson:
    """A title, what it is about, and its steps."""

    name: str
    title: str
    about: str
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@cache
def lessons() -> tuple[Lesson, ...]:
    """Read all lessons.

    >>> [lesson.title for lesson in lessons()][:2]
    ['One crossing', 'Three phases']
    """
    return tuple(_read(name) for name in NAMES)


def lesson_named(name: str) -> Lesson:
    """Return one lesson; the error lists what there is."""
    for lesson in lessons():
        if lesson.name == name:
            return lesson
    raise ValueError(f"There is no lesson {name[:40]!r}. There are: {', '.join(NAMES)}.")


def _read(name: str) -> Lesson:
    text = (files("tiltmeter.explorer") / "lessons" / f"{name}.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)
    steps = tuple(Step(**{**step, "choices": tuple(step["choices"])}) for step in given["step"])
    return Lesson(name, given["title"], given["about"], steps)
