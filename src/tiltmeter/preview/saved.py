"""Saved previews: curves, causes and ladder in a folder, without inputs and without weights of a model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiltmeter.preview.causes import Causes
from tiltmeter.preview.doubt import Doubt
from tiltmeter.preview.ladder import Ladder
from tiltmeter.record import Trajectory, load, save
from tiltmeter.record.labelled import label_from_json, label_to_json

if TYPE_CHECKING:
    from tiltmeter.preview.preview import Preview

#: The folder of the curves, and the file beside it.
RUN, FILE = "run", "preview.json"
FORMAT = 1


def save_preview(view: Preview, folder: Path) -> Path:
    """Write a preview to a new folder."""
    if folder.exists():
        raise FileExistsError(f"{folder} already exists and is never overwritten: choose a new folder.")
    folder.mkdir(parents=True)
    save(view.run, folder / RUN)
    content: dict[str, Any] = {
        "format": FORMAT,
        "doubt": vars(view.doubt),
        "causes": [
            {"curve": curve, "group": label_to_json(group), "deals": deals, "causes": causes.to_json()}
            for (curve, group, deals), causes in view._causes.items()
        ],
        "ladder": None,
    }
    if view._ladder is not None:
        content["ladder"] = {"group": label_to_json(view._ladder.group), "ladder": view._ladder.to_json()}
    waiting = folder / f"{FILE}.part"
    waiting.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(waiting, folder / FILE)
    return folder


def load_preview(folder: str | os.PathLike[str]) -> Preview:
    """The preview that `Preview.save` wrote; it has curves and claims, and the causes asked for before.

    >>> import numpy as np, tiltmeter as tm
    >>> from tempfile import TemporaryDirectory
    >>> rng = np.random.default_rng(0)
    >>> data = tm.GroupedData(rng.normal(size=(600, 3)), rng.integers(0, 2, 600), ["a", "b"] * 300)
    >>> view = tm.preview(*data.split(0.4))
    >>> with TemporaryDirectory() as place:
    ...     load_preview(view.save(place + "/view")).claim == view.claim
    True

    Args:
        folder: The folder that was written.
    """
    from tiltmeter.preview.preview import Preview

    path = Path(folder)
    file = path / FILE
    if not file.is_file():
        raise FileNotFoundError(f"{path} holds no preview: it has no {FILE}.")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ValueError(f"{path} holds a preview of format {content['format']}, which is not known here.")
        doubt = Doubt(**content["doubt"])
        causes = {}
        for one in content["causes"]:
            group = label_from_json(one["group"])
            causes[one["curve"], group, one["deals"]] = Causes.from_json(one["causes"], group)
        stored = content["ladder"]
        ladder = None if stored is None else Ladder.from_json(stored["ladder"], label_from_json(stored["group"]))
    except (KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no preview that can be read: {error}.") from None
    run = load(path / RUN)
    if not isinstance(run, Trajectory):
        raise ValueError(f"{path} is no preview that can be read: {RUN} holds no run.")
    view = Preview(run, doubt)
    view._causes, view._ladder = causes, ladder
    return view
