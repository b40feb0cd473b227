"""study.json: everything that is needed to go on with a study, from this machine or another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tiltmeter.record.directory.atomic_files import write_json
from tiltmeter.study.places import STUDY
from tiltmeter.version import __version__

FORMAT = 1


def write_study(root: Path, said: dict[str, Any]) -> None:
    """Write it, or check that the folder holds the same function: levels and seeds may be added later."""
    path = root / STUDY
    if path.exists():
        held = read_study(root)
        for name in ("module", "name"):
            if held["cell"][name] != said["cell"][name]:
                was, now = (f"{one['cell']['module']}:{one['cell']['name']}" for one in (held, said))
                raise ValueError(f"{root} holds a study of {was}. Found cell = {now}: choose another folder.")
        if {**held, "tiltmeter": None} == {**said, "format": FORMAT, "tiltmeter": None}:
            return
    root.mkdir(parents=True, exist_ok=True)
    write_json(path, {"format": FORMAT, "tiltmeter": __version__, **said})


def read_study(root: Path) -> dict[str, Any]:
    """What the file says; a sentence for everything that is no study."""
    path = root / STUDY
    if not path.is_file():
        raise FileNotFoundError(f"{root} should be the folder of a study. Found no {STUDY} there.")
    try:
        said = json.loads(path.read_bytes())
        if said["format"] > FORMAT:
            raise ValueError(f"it was written by a newer tiltmeter (format {said['format']})")
        for name in ("cell", "version", "factors", "cells", "fraction", "seeds", "tries", "limit"):
            said[name]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a study of format {FORMAT}: {error}.") from None
    return dict(said)
