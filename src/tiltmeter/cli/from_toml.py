"""from_toml: what a file of `tiltmeter train` says, as objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tiltmeter.cli.train_config import TrainingFile, read_config
from tiltmeter.data.grouped import GroupedData
from tiltmeter.question import Question
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch

if TYPE_CHECKING:
    from torch import nn


class TrainingTask(NamedTuple):
    """A network with its data and settings: `train(*task[:4])`, `forecast(*task[:4])`, `advise(*task[:4])`."""

    model: nn.Module
    train: GroupedData
    held_out: GroupedData
    recipe: Recipe
    watch: Watch
    question: Question | None


def from_toml(path: str | os.PathLike[str]) -> TrainingTask:
    """The network, data, settings and question of a file of `tiltmeter train`.

    >>> import tiltmeter as tm
    >>> from pathlib import Path
    >>> written = Path("digits.toml").write_text("[data]\\nsource = 'digits'\\n[training]\\nlr = 0.1\\nsteps = 20\\n")
    >>> task = tm.from_toml("digits.toml")
    >>> run = tm.train(*task[:4])
    >>> float(run["loss"].time[-1])
    20.0

    Args:
        path: File with the tables [data], [model], [training], [evaluations] and [question].
    """
    place = Path(path)
    tables: dict[str, dict[str, Any]] = read_config(place)
    file = TrainingFile.of(tables, place.parent)
    return TrainingTask(file.network(), file.data, file.held_out, file.ordered, file.watch, file.held_out.question)
