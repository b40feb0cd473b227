"""overview: all interventions in one table, from their own words (`python -m tiltmeter.interventions.overview
docs`)."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import PointIntervention
from tiltmeter.interventions.stored import intervention_named

#: The table is between these lines of `interventions.md`.
START, END = "<!-- table -->", "<!-- end of table -->"
#: Fields that have no default, for an example of their intervention.
GIVEN: dict[str, dict[str, Any]] = {
    "PullSchedule": {"pulls": {"a": 0.5, "b": 0.5}},
    "DualAscent": {"bound": 0.3},
    "AttributionPrior": {"mask": (0,)},
}
#: Fields that many interventions have; the pages explain them once.
COMMON = ("by", "memory", "every", "seed")


@dataclass(frozen=True)
class Row:
    """One intervention: its name with its fields, its kind, what it does, what it needs, what it costs and where it
    goes."""

    name: str
    settings: str
    kind: str
    title: str
    needs: str
    cost: str
    routes: str
    exact: str
    cannot: str


def rows() -> list[Row]:
    """One row for every intervention, in the order of `INTERVENTIONS`.

    >>> [row.cost for row in rows() if row.name in ("GroupDRO", "UPGrad", "JTT")]
    ['1', 'G + 1', '1 + 75 / steps']
    """
    return [_row(name) for name in INTERVENTIONS]


def markdown() -> str:
    """The table for the docs; each intervention links to the page of its kind."""
    lines = [
        "| intervention | what it does | needs | cost | routes | exact in | cannot |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows():
        link = f"[`{row.name}{row.settings}`](interventions-{row.kind}.md)"
        parts = (link, row.title, row.needs, row.cost, row.routes, row.exact, row.cannot)
        lines.append(f"| {' | '.join(parts)} |")
    return "\n".join(lines)


def _row(name: str) -> Row:
    kind = intervention_named(name)
    law = kind(**GIVEN.get(name, {}))
    shown = sorted((field for field in fields(law) if field.name not in COMMON), key=lambda field: bool(field.kw_only))
    settings = [
        f"{field.name}=" if field.kw_only else field.name for field in shown if field.name != "scout" or field.default
    ]
    room = INTERVENTIONS[name].split(".")[2]
    first = (import_module(kind.__module__).__doc__ or "").splitlines()[0]
    own_loop = ("`Steering`",) if isinstance(law, (GroupIntervention, PointIntervention)) else ()
    return Row(
        name,
        f"({', '.join(settings)})",
        room,
        first.split(": ", 1)[-1].rstrip("."),
        law.needs,
        _cost(law),
        ", ".join((*(f"`{route}`" for route in law.routes), *own_loop)),
        _exact(law),
        law.cannot,
    )


def _cost(law: Intervention) -> str:
    """Gradient evaluations relative to plain training, for G groups, and the steps of a scout."""
    two, four = law.cost(2), law.cost(4)
    text = f"{two:.3g}" if two == four else "G + 1"
    if two != four and (two, four) != (3.0, 5.0):
        raise ValueError(f"The cost of {type(law).__name__} should be a number or G + 1. Found {two} and {four}.")
    scout = getattr(law, "scout", 0)
    return f"{text} + {scout} / steps" if scout else text


def _exact(law: Intervention) -> str:
    if not isinstance(law, GroupIntervention):
        return "–"
    if law.sees_gram:
        return "`simulate`"
    return "closed form, `simulate`" if law.constant else "`predict`, `simulate`"


def main(folder: str) -> None:
    """Write the table into `interventions.md` of this folder."""
    page = Path(folder) / "interventions.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(START)
    page.write_text(f"{before}{START}\n\n{markdown()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
