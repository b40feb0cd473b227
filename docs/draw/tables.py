"""The tables of measures and interventions in the docs, from their own descriptions: `python docs/draw/tables.py`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import tiltmeter_lab.interventions as of_the_lab
from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import PointIntervention
from tiltmeter.interventions.stored import intervention_named
from tiltmeter_lab.measures.catalogue import find
from tiltmeter_lab.measures.overview import rows as measure_rows

DOCS = Path(__file__).parents[1]
#: A table is between these lines of its page.
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
class InterventionRow:
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


def intervention_rows() -> list[InterventionRow]:
    """One row for every intervention, those of the laboratory last.

    >>> [row.cost for row in intervention_rows() if row.name in ("GroupDRO", "UPGrad", "JTT")]
    ['1', 'G + 1', '1 + 75 / steps']
    """
    return [_intervention_row(name) for name in (*INTERVENTIONS, *of_the_lab.INTERVENTIONS)]


def intervention_table() -> str:
    """The table for the docs; each intervention links to the page of its kind."""
    lines = [
        "| intervention | what it does | needs | cost | routes | exact in | cannot |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in intervention_rows():
        page = "lab/interventions.md" if row.name in of_the_lab.INTERVENTIONS else f"interventions-{row.kind}.md"
        link = f"[`{row.name}{row.settings}`]({page})"
        parts = (link, row.title, row.needs, row.cost, row.routes, row.exact, row.cannot)
        lines.append(f"| {' | '.join(parts)} |")
    return "\n".join(lines)


def _intervention_row(name: str) -> InterventionRow:
    kind = intervention_named(name)
    law = kind(**GIVEN.get(name, {}))
    shown = sorted((field for field in fields(law) if field.name not in COMMON), key=lambda field: bool(field.kw_only))
    settings = [
        f"{field.name}=" if field.kw_only else field.name for field in shown if field.name != "scout" or field.default
    ]
    room = kind.__module__.split(".")[2]
    own_loop = ("`Steering`",) if isinstance(law, (GroupIntervention, PointIntervention)) else ()
    return InterventionRow(
        name,
        f"({', '.join(settings)})",
        room,
        law.title,
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


def measure_table() -> str:
    """The table for the docs; each measure links to the page `measure-*.md` that contains its name or class."""
    pages = {page.name: page.read_text(encoding="utf-8") for page in sorted((DOCS / "lab").glob("measure-*.md"))}
    lines = [
        "| measure | what is measured | what it takes | passes | where exact | when absent |",
        "|---|---|---|---|---|---|",
    ]
    for row in measure_rows():
        named = re.compile(rf"[`\"]{row.name}[`\"]|\b{find(row.name).__name__}\b")
        page = next((page for page, text in pages.items() if named.search(text)), None)
        name = f"`{row.name}`" if page is None else f"[`{row.name}`]({page})"
        cells = (name, row.title, row.takes, row.cost, row.exact, row.absent)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


#: What stands in the table of previews, and how the rows of its benchmark are called.
JUDGED = {
    "preview": "the preview",
    "another seed": "another seed of the training",
    "columns": "the columns alone",
    "pilot": "the first 5 % of the training",
}
NETWORKS = {"64": "64", "128-64 LayerNorm GELU": "128-64"}


def preview_table() -> str:
    """How close previews are to trainings, from the rows that `benchmarks/preview.py judge` stored."""
    found = _results("preview")
    heads = ["network", "groups of", "who says it", "within 3 points", "median", "90 %", "rms", "end rates"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for network, name in NETWORKS.items():
        for kind, people in (("large", "200 and more"), ("small", "20 to 200")):
            for word, said in JUDGED.items():
                one = found[network][f"{word}, {kind}, kept"]
                numbers = [
                    f"{100 * one['within 3']:.0f} %",
                    *(f"{one[part]:.1f}" for part in ("median", "90 %", "rms")),
                ]
                lines.append(f"| {' | '.join([name, people, said, *numbers, str(one['cells'])])} |")
    refused = found["refused"]
    parts = [f"{found['tasks'] - len(refused)} of {found['tasks']} tables; refused: {', '.join(refused)}."]
    for network, name in NETWORKS.items():
        kept, away = (found[network][f"ratio by disagreement, {label}"] for label in ("kept", "refused"))
        inside = [found[network][f"inside the band, {kind}, kept"] for kind in ("large", "small")]
        large, small = (f"{100 * share:.0f} % of {count}" for share, count in inside)
        parts.append(
            f"Network {name}: ratio {kept[0]:.2f} ({kept[1]:.2f} to {kept[2]:.2f}) on kept tables, {away[0]:.2f} on "
            f"refused ones; gaps inside the 90 % band: {large} (large groups), {small} (small ones)."
        )
    return "\n".join([*lines, "", " ".join(parts), "", *_named_lines(), "", *_cause_lines(), "", *_price_lines()])


def _results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS.parent / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))
    return found


def _named_lines() -> list[str]:
    """Who was named, beside the claims of trainings, and how often where groups are random."""
    one = _results("preview_statements")
    return [
        f"**Who is named.** In {one['statements']} statements (two attributes and seven splits of these tables) a "
        f"group was named {one['named']} times. The training's own claim named another in {one['wrong']} of them, and "
        f"nobody in {one['named where the training names nobody']}. Of {one['gaps with |z| > 3']} gaps of more than "
        f"three standard errors {one['of these named']} were named. Of {one['random groupings']:,} random groupings "
        f"{one['of these named in any rate']} got a name."
    ]


def _cause_lines() -> list[str]:
    """Causes beside networks that were trained in the populations."""
    found = _results("preview_causes")
    lines = ["| causes of the gap in | right signs | trivial rule | right top cause | trivial rule |", f"|{'---|' * 5}"]
    for curve, name in (("tpr", "true positive rate"), ("loss", "loss")):
        one = found[curve]
        cells = [name]
        for part in ("signs", "top cause"):
            low, high = one[part]["difference, 90 %"]
            cells += [
                f"{one[part]['right']} of {one[part]['cases']}",
                f"{one[part]['trivial rule']} (difference {100 * low:.0f} to {100 * high:.0f} points)",
            ]
        lines.append(f"| {' | '.join(cells)} |")
    unclear = [found[curve]["named in unclear changes"] for curve in ("tpr", "loss")]
    turned = sum(found[curve]["named where it came the other way"] for curve in ("tpr", "loss"))
    named, total = found["random groupings with a cause"]
    return [
        "**Causes.** On twelve fresh tables networks were trained in the populations, five times each, by two "
        "optimisers. "
        'Clear changes are counted. The trivial rules are "equalising shrinks the gap" and "always base rates". '
        "Differences have 90 % limits over tables.",
        "",
        *lines,
        "",
        f"Named in unclear changes: {unclear[0][0]} of {unclear[0][1]} (rate), {unclear[1][0]} of {unclear[1][1]} "
        f"(loss). Named and clearly the other way: {turned}. Of {total} random groupings {named} got a cause.",
    ]


def _price_lines() -> list[str]:
    """What a preview costs, as ratios of CPU time in one run."""
    rows = _results("preview_speed")["rows"]
    ratio = {label.removesuffix(" / a preview"): row["ratio"] for label, row in rows.items()}
    seconds = next(row["preview"] for row in rows.values() if "preview" in row)
    return [
        f"**Price.** 30,000 rows of 100 columns take {seconds:.1f} s of CPU. A training of the network of `tiltmeter "
        f"init` took {ratio['a training of init' + chr(39) + 's network']:.0f} times as long, `tm.forecast` by "
        f"rehearsals {ratio['tm.forecast, by rehearsals']:.0f} times. A what-if of weights took "
        f"{1000 * seconds * ratio['a what-if: weights']:.0f} ms, of thresholds or a stop "
        f"{1000 * seconds * ratio['a what-if: thresholds']:.0f} ms, causes with their limits "
        f"{seconds * ratio['causes with limits']:.0f} s. Memory: {ratio['peak memory of a preview, in MB']:.0f} MB."
    ]


def shown(page: str) -> str:
    """The table that a page shows now."""
    return (DOCS / page).read_text(encoding="utf-8").split(START)[1].split(END)[0].strip()


def write(page: str, table: str) -> None:
    """Put a table into its place on a page."""
    before, rest = (DOCS / page).read_text(encoding="utf-8").split(START)
    (DOCS / page).write_text(f"{before}{START}\n\n{table}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    write("interventions.md", intervention_table())
    write("lab/measures.md", measure_table())
    write("preview.md", preview_table())
