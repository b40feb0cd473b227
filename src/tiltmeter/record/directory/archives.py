"""Archives of torch: checkpoints, whose parts carry checksums that torch does not compare."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import Any

from tiltmeter.record.directory.atomic_files import CHANGED, open_file
from tiltmeter.shown_text import shortened


def damage_of_archive(path: Path) -> str | None:
    """What is wrong with a file of torch, in a few words; None if every part is as its checksum says."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
                return "its parts are compressed"
            changed = archive.testzip()
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    except Exception as error:  # the reader of archives raises many kinds of errors
        return f"it is not whole: {shortened(str(error) or type(error).__name__)}"
    return None if changed is None else CHANGED


def read_archive(path: Path) -> Any:
    """What a file of torch holds, on the CPU; a ValueError says in a few words what is wrong. Nothing is unpickled."""
    import torch

    damage = damage_of_archive(path)
    if damage is not None:
        raise ValueError(damage)
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a crafted file makes torch raise
        first = shortened((str(error).strip() or type(error).__name__).splitlines()[0])
        raise ValueError(f"it cannot be read: {first.rstrip('.')}") from None


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What a checkpoint of a training holds; a ValueError says in a few words what is wrong."""
    state = read_archive(path)
    step = state.get("step") if isinstance(state, dict) else None
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise ValueError("it is no checkpoint of tiltmeter")
    return dict(state)


def damage_of_checkpoint(path: Path) -> str | None:
    """Why a training could not go on from this file; None if it could. Without torch only its checksums are asked."""
    try:
        if importlib.util.find_spec("torch") is None:
            return damage_of_archive(path)
        read_checkpoint(path)
    except ValueError as error:
        return str(error)
    return None
