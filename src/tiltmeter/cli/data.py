"""`tiltmeter data`: list, download and check public data sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from cyclopts import App

from tiltmeter.cli.terminal import Json, print_json, print_rows
from tiltmeter.data.public.fetch import fetch
from tiltmeter.data.public.presence import Presence, check, data_folder, folder_of, is_present
from tiltmeter.data.public.sources import all_sources, source_of

data = App(
    name="data",
    help="List, download and check public data sets.",
    help_epilogue="Example: `tiltmeter data get adult`",
)


@data.command(name="list")
def list_sets(*, json: Json = False) -> None:
    """List the data sets that tiltmeter reads, and which of them are on this machine."""
    found = [(source, is_present(name)) for name, source in all_sources().items()]
    if json:
        rows: list[dict[str, Any]] = [
            {
                "name": source.name,
                "present": here,
                "folder": str(folder_of(source.name)),
                "about": source.about,
                "licence": source.licence,
            }
            for source, here in found
        ]
        print_json({"folder": str(data_folder()), "sets": rows})
        return
    print(f"{sum(here for _, here in found)} of {len(found)} data sets are in {data_folder()}.")
    cells = [(source.name, "yes" if here else "no", source.about, source.licence) for source, here in found]
    print_rows(("name", "here", "what", "licence"), cells)


@data.command
def get(*names: str, json: Json = False) -> None:
    """Download data sets from their publishers and check them; existing files are kept.

    Parameters
    ----------
    names
        Names of the data sets.
    """
    if not names:
        raise ValueError(f"Name at least one data set. There are: {', '.join(all_sources())}.")
    for name in names:
        source_of(name)
    checked = []
    for name in names:
        fetch(name, lambda line: print(line, file=sys.stderr))
        checked.append(check(name))
    _print(checked, json)


@data.command(name="check")
def check_sets(*names: str, json: Json = False) -> None:
    """Read complete data sets and compare them with what was published; exit code 2 if one is wrong.

    Parameters
    ----------
    names
        Names of the data sets (default: all; missing ones are then not an error).
    """
    for name in names:
        source_of(name)
    _print([check(name) for name in names or all_sources()], json, strict=bool(names))


def _print(found: Sequence[Presence], json: bool, strict: bool = True) -> None:
    if json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            print(one)
    bad = [one.name for one in found if one.state == "wrong" or (strict and one.state == "absent")]
    if bad:
        raise ValueError(f"Missing or not as published: {', '.join(bad)}.")
