"""Read a TOML file; errors are one sentence."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of the file."""
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: byte {error.start + 1} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply to be read.") from None
    except ValueError:  # Python refuses whole numbers of thousands of digits
        raise ValueError(f"{path} holds a number with more digits than can be read.") from None
