"""Intervention: one way to change the bias, as a frozen value that can be stored and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, TypeAlias

from tiltmeter.interventions.stored_fields import field_to_json
from tiltmeter.record.labelled import JSON
from tiltmeter.schedules import breaks_of

#: The group labels that an intervention must know.
Needs: TypeAlias = Literal["training groups", "validation groups", "no groups"]


@dataclass(frozen=True)
class Intervention:
    """The base of all kinds: which labels it needs, what it costs, what it cannot do, and its JSON.

    >>> from tiltmeter.interventions import GroupDRO
    >>> law = GroupDRO(rate=0.01)
    >>> law.needs, law.cost(groups=4)
    ('training groups', 1.0)
    """

    #: The group labels that it must know.
    needs: ClassVar[Needs] = "training groups"
    #: What it does, in a line.
    title: ClassVar[str] = ""
    #: What it cannot do, in a sentence.
    cannot: ClassVar[str] = ""
    #: What it changes, for the error message of a function that cannot apply it.
    changes: ClassVar[str] = "training"

    @property
    def routes(self) -> tuple[str, ...]:
        """The functions that apply it, the one to turn to first ahead; all others refuse it by name."""
        return ("train",)

    @property
    def applied_by(self) -> str:
        """The function to turn to."""
        return self.routes[0]

    def cost(self, groups: int) -> float:  # noqa: ARG002
        """Return the gradient evaluations relative to plain training, for this many groups."""
        return 1.0

    @property
    def breaks(self) -> tuple[float, ...]:
        """Return the times at which it is not smooth, for integrators."""
        found: set[float] = set()
        for field in fields(self):
            value = getattr(self, field.name)
            for one in value.values() if isinstance(value, Mapping) else (value,):
                found.update(breaks_of(one))
        return tuple(sorted(found))

    def to_json(self) -> dict[str, JSON]:
        """Return class name and fields; `stored.intervention_from_json` rebuilds the interventions of this package."""
        from tiltmeter.interventions.stored import stored_name

        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": stored_name(self), **{name: field_to_json(value) for name, value in given.items()}}
