"""`tiltmeter evaluate`: the checkpoints of a training as a run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Literal

from cyclopts import Parameter

from tiltmeter.cli.run_input import Names
from tiltmeter.cli.show import Summary
from tiltmeter.cli.terminal import Curve, Json
from tiltmeter.data.grouped import GroupedData

#: Word -> what the network was trained with; by default what fits its outputs.
LOSSES = Literal["logistic", "cross-entropy", "square", "probabilities"]


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class PointColumns:
    """The columns of a table of points."""

    label: str | None = None
    "Column with the labels, of a table."
    group: Names = ()
    "Column with the groups; several for intersections."
    features: Names = ()
    "Columns that the network takes; by default all others."
    positive_label: str | None = None
    "Of two labels, the one that is a yes."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """How the checkpoints are evaluated."""

    loss: LOSSES | None = None
    "What the outputs are: by default scores before a sigmoid or softmax, unless the network ends in one."
    device: str | None = None
    "Where to evaluate, as cuda."
    processes: int = 1
    "How many checkpoints to evaluate side by side."


def evaluate(
    checkpoints: Path,
    *,
    model: str,
    data: Path,
    to: Path,
    columns: PointColumns = PointColumns(),
    work: WorkOptions = WorkOptions(),
    curve: Curve = "loss",
    json: Json = False,
) -> None:
    """Evaluate the saved weights of a training on held-out points, as if a probe had watched it.

    Called again with the same directory, it goes on after the last checkpoint that was evaluated.

    Parameters
    ----------
    checkpoints
        A folder with files of safetensors or torch state dicts that have their step in the name, as step_500.pt.
    model
        The function that makes the network: FILE.py:FUNCTION.
    data
        The held-out points: a table (.csv, .parquet, .feather), or arrays x, y, group (.npz).
    to
        The run directory.
    """
    from tiltmeter.predictions.checkpoints import checkpoints as run_of

    held_out = _points(data, columns)
    asked = {"loss": _loss(work.loss, held_out), "device": work.device, "processes": work.processes}
    trajectory = run_of(checkpoints, _Maker(model), held_out, to, **asked)
    print(f"Saved to {to}", file=sys.stderr)
    Summary(trajectory, curve).print(as_json=json)


def _points(data: Path, columns: PointColumns) -> GroupedData:
    label, group = columns.label, columns.group
    if data.suffix.lower() == ".npz":
        return GroupedData.from_npz(data, label=label or "y", group=group[0] if group else "group")
    if label is None or not group:
        missing = "--label" if label is None else "--group"
        raise ValueError(f"A table of points needs --label COLUMN and --group COLUMN. Found no {missing} for {data}.")
    features = list(columns.features) or None
    return GroupedData.from_frame(
        data, label=label, group=list(group), features=features, positive=columns.positive_label
    )


@dataclass(frozen=True)
class _Maker:
    """Makes the network; another process finds the function by its name again."""

    text: str

    def __call__(self) -> Any:
        return _maker(self.text)()


def _maker(text: str) -> Callable[[], Any]:
    """The function that FILE.py:FUNCTION names; the file is run."""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ValueError(f"--model should be FILE.py:FUNCTION. Found {text!r}.")
    path = Path(file)
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}.")
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"--model should name a file of Python. Found {file!r}.")
    module = module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # the file may import its neighbours
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    make = getattr(module, name, None)
    if not callable(make):
        raise ValueError(f"{file} should have a function {name}. Found {type(make).__name__}.")
    return make  # type: ignore[no-any-return]


def _loss(word: str | None, held_out: GroupedData) -> Any:
    from tiltmeter.losses import CrossEntropy, Logistic, Square
    from tiltmeter.measures.output_kind import loss_of_probabilities

    if word == "probabilities":
        return loss_of_probabilities(len(held_out.labels) > 2)
    known: dict[str | None, Any] = {"logistic": Logistic(), "cross-entropy": CrossEntropy(), "square": Square()}
    return known.get(word)
