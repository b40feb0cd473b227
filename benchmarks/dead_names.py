"""Dead names: functions, classes, methods and properties that nothing uses; `make lint` fails on any.

Names that are used only through text (verbs, handlers of the explorer, callbacks of other libraries) are listed here
with the reason.
"""

from __future__ import annotations

import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parents[1]
#: Where a use may stand, and where a dead name is reported.
USES = ("src", "lab/src", "tests", "lab/tests", "benchmarks", "docs/draw", "docs/ext", "lab/draw")
REPORTED = ("src/", "lab/src/")
KINDS = ("function", "class", "method", "property")
#: Name or pattern -> why it is not dead.
ALLOWED = {
    "on_*": "callbacks of Lightning, Hugging Face and skorch",
    "prune_*": "called by torch-pruning",
    "get_in_channels": "called by torch-pruning",
    "get_out_channels": "called by torch-pruning",
    "bench": "a verb, loaded by its name",
    "explore": "a verb, loaded by its name",
    "list_sets": "a verb of `tiltmeter data`",
    "check_sets": "a verb of `tiltmeter data`",
    "explored_file": "loaded by its name in the explorer",
    "run_report": "asked for by its name in the worker of the explorer",
    "run_quick": "asked for by its name in the worker of the explorer",
    "whole_*": "a data set, loaded by its name from the list of sources",
    "BiasMeasure": "the contract of a measure, for those who write one",
}


def entry_points() -> set[str]:
    """Names that the houses offer one another through the metadata of their packages."""
    points = [
        tomllib.loads((ROOT / part).read_text(encoding="utf-8")) for part in ("pyproject.toml", "lab/pyproject.toml")
    ]
    groups = [group for one in points for group in one["project"].get("entry-points", {}).values()]
    return {target.partition(":")[2] for group in groups for target in group.values()}


def dead_names() -> list[str]:
    """Every dead name that is not allowed, with its place."""
    search = Vulture()
    search.scavenge([str(ROOT / part) for part in USES if (ROOT / part).is_dir()])
    rows, offered = [], entry_points()
    for item in search.get_unused_code(min_confidence=60):
        place = item.filename.relative_to(ROOT).as_posix()
        known = item.name in offered or any(fnmatch(item.name, pattern) for pattern in ALLOWED)
        if place.startswith(REPORTED) and item.typ in KINDS and not known:
            rows.append(f"{place}:{item.first_lineno} {item.typ} {item.name}")
    return rows


if __name__ == "__main__":
    rows = dead_names()
    print("\n".join(rows) or "No dead names.")
    sys.exit(bool(rows))
