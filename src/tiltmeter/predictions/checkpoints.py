"""checkpoints: a run from the saved weights of a training that nobody watched."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiltmeter.data.grouped import GroupedData
from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.record.directory.archives import damage_of_archive
from tiltmeter.shown_text import shortened

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tiltmeter.measures.answers import Answers

#: Endings of files with weights; others in the folder are left alone.
ENDINGS = (".safetensors", ".pt", ".pth", ".ckpt", ".bin")
#: Names of the weights inside a larger checkpoint, as Lightning and common loops write them.
INSIDE = ("state_dict", "model_state_dict", "model", "module")
#: What wrappers put before the names of weights.
WRAPPERS = ("module.", "_orig_mod.", "model.")


@dataclass(frozen=True)
class Checkpoint:
    """A file with weights, and the step that its name tells."""

    step: int
    path: Path


def find_checkpoints(folder: str | os.PathLike[str]) -> list[Checkpoint]:
    """The checkpoints of a folder in order of their steps: the last number in the name of the file, or of its folder.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     for name in ("step_20.pt", "step_100.pt", "notes.txt"):
    ...         _ = Path(place, name).write_bytes(b"")
    ...     [found.step for found in find_checkpoints(place)]
    [20, 100]
    """
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"No folder {place}.")
    files = sorted(path for path in place.rglob("*") if path.suffix in ENDINGS and path.is_file())
    steps: dict[int, Path] = {}
    for path in files:
        # In a folder for each step ("checkpoint-500/model.safetensors") there may be other files, as the optimiser's.
        numbers = re.findall(r"\d+", path.stem)
        if not numbers and path.parent != place and path.stem in ("model", "pytorch_model", "adapter_model"):
            numbers = re.findall(r"\d+", path.parent.name)
        if not numbers:
            continue
        step = int(numbers[-1])
        if step in steps:
            raise ValueError(
                f"Every step should have one checkpoint. Found {steps[step].name} and {path.name} for step {step}."
            )
        steps[step] = path
    if not steps:
        raise ValueError(
            f"{place} should hold checkpoints ({', '.join(ENDINGS)}) with their step in the name, as step_500.pt. "
            f"Found {len(files)} files with such an ending, and none with a number."
        )
    return [Checkpoint(step, steps[step]) for step in sorted(steps)]


def checkpoints(
    folder: str | os.PathLike[str] | Iterable[Checkpoint],
    make: Callable[[], nn.Module],
    held_out: GroupedData,
    to: str | os.PathLike[str] | None = None,
    *,
    loss: Any = None,
    read: Callable[[Any], Any] | None = None,
    chunk: int = 256,
    device: str | None = None,
    processes: int = 1,
) -> Trajectory:
    """A run from a folder of saved weights: every checkpoint is loaded into the network of `make()` and evaluated.

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, torch
    >>> held_out = GroupedData(np.eye(4, dtype="float32")[[0, 1, 2, 3] * 20], [0, 1] * 40, ["a", "a", "b", "b"] * 20)
    >>> with TemporaryDirectory() as folder:
    ...     for step in (0, 100):
    ...         torch.save(torch.nn.Linear(4, 1).state_dict(), f"{folder}/step_{step}.pt")
    ...     run = checkpoints(folder, lambda: torch.nn.Linear(4, 1), held_out)
    >>> run["loss"].time.values.tolist(), run["loss"].group.values.tolist()
    ([0, 100], ['a', 'b'])

    Files of safetensors and torch are read, the latter with `weights_only=True`: nothing in them is executed. Larger
    checkpoints are searched for their weights ("state_dict", "model"), and the names that wrappers add are removed.
    With `to`, every evaluation is on disk before the next begins; called again, it goes on after the last one. With
    several `processes`, checkpoints are evaluated side by side and recorded in order; `make`, `loss` and `read` should
    then be importable by name.

    Args:
        folder: Folder of saved weights, or an iterable of checkpoints.
        make: Makes a network into which weights are loaded.
        held_out: Points that judge the model and are never trained on.
        to: Run directory, which goes on after a kill; None: memory.
        loss: Loss to record, as in `Probe`; None: the one that fits.
        read: Finds the scores in what the model returns; None: the model returns scores.
        chunk: Points that pass through the model at once; fewer need less memory.
        device: Where the network is evaluated, such as "cuda"; None: where `make` puts it.
        processes: Checkpoints that are evaluated side by side; `make` should then be importable.
    """
    if isinstance(processes, bool) or not isinstance(processes, int) or processes < 1:
        raise ValueError(f"`processes` should be a positive integer. Found processes = {processes!r}.")
    import torch

    from tiltmeter.measures.default_curves import DEFAULTS
    from tiltmeter.measures.point_keeper import PointKeeper
    from tiltmeter.modules.forward import describe

    found = find_checkpoints(folder) if isinstance(folder, (str, os.PathLike)) else list(folder)
    given = (make, held_out, loss, read, chunk, device)
    model, answers = _made(*given)
    origin = Origin(
        "predictions",
        problem={"held_out": held_out.to_json()},
        settings={"model": describe(model), "loss": answers.loss.definition},
    )
    resume = to is not None and Path(to, "run.json").exists()
    with Recorder(to, clock="step", origin=origin, resume=resume) as recorder, torch.no_grad():
        keeper, done = PointKeeper(held_out), recorder.last_time
        for checkpoint in found:
            if done is not None and checkpoint.step <= done:
                keeper.last = checkpoint.step
        left = [one for one in found if done is None or one.step > done]
        with ExitStack() as stack:
            if processes > 1 and len(left) > 1:
                scores = stack.enter_context(_side_by_side(left, min(processes, len(left)), given))
            else:
                scores = (_scored(model, answers, one.path) for one in left)
            for checkpoint, score in zip(left, scores, strict=True):
                snapshot = answers.assemble([(0, score)], step=checkpoint.step)
                curves = {name: values for measure in DEFAULTS for name, values in measure(snapshot).items()}
                recorder.append(checkpoint.step, curves, keeper(snapshot, checkpoint.step, checkpoint is found[-1]))
        return recorder.trajectory()


def _made(
    make: Callable[[], nn.Module], held_out: GroupedData, loss: Any, read: Any, chunk: int, device: str | None
) -> tuple[nn.Module, Answers]:
    import torch
    from torch import nn

    from tiltmeter.measures.answers import Answers

    model = make()
    if not isinstance(model, nn.Module):
        raise TypeError(f"`make` should return a torch.nn.Module. Found {type(model).__name__}.")
    model = (model if device is None else model.to(device)).eval()
    with torch.no_grad():
        return model, Answers(model, held_out, loss, None, read, chunk, False)


def _scored(model: nn.Module, answers: Answers, path: Path) -> Tensor:
    load_weights(model, path)
    return answers.own_scores(model)


#: The network and the points of this process, where several work side by side.
_WORKER: list[tuple[nn.Module, Answers]] = []


def _begin(threads: int, given: tuple[Any, ...]) -> None:
    import torch

    torch.set_num_threads(threads)
    _WORKER.append(_made(*given))


def _scores_at(path: Path) -> Any:
    import torch

    with torch.no_grad():
        return _scored(*_WORKER[0], path).cpu().numpy()


@contextmanager
def _side_by_side(left: Sequence[Checkpoint], processes: int, given: tuple[Any, ...]) -> Iterator[Iterator[Tensor]]:
    """The scores of every checkpoint in order, computed by several processes."""
    import torch

    try:
        pickle.dumps(given[:1] + given[2:4])
    except (pickle.PicklingError, AttributeError, TypeError):
        raise TypeError(
            "With several processes, `make`, `loss` and `read` should be importable by name. Found a lambda or one "
            "inside a function."
        ) from None
    threads = max(1, torch.get_num_threads() // processes)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _begin, (threads, given)) as pool:
        try:
            yield map(torch.from_numpy, pool.map(_scores_at, [one.path for one in left]))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def load_weights(model: nn.Module, path: Path) -> None:
    """Put the weights of a file into the model; nothing is unpickled."""
    weights = _unwrapped(_read(path), set(model.state_dict()))
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        text = shortened(str(error).split(":", 1)[-1], 300)
        raise ValueError(f"{path.name} should hold the weights of the model. Found: {text}") from None


def _read(path: Path) -> Mapping[str, Any]:
    import torch

    try:
        if path.suffix == ".safetensors":
            try:
                from safetensors.torch import load_file
            except ImportError:
                raise ImportError("Files of safetensors need it: pip install 'tiltmeter[safetensors]'.") from None
            return load_file(path)
        damage = damage_of_archive(path) if zipfile.is_zipfile(path) else None
        if damage is not None:
            raise ValueError(damage)
        contents = torch.load(path, map_location="cpu", weights_only=True)
    except (ImportError, FileNotFoundError):
        raise
    except Exception as error:  # torch, zipfile and safetensors raise many kinds for damaged files
        text = shortened(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise ValueError(f"{path.name} should be a whole file of weights. Found: {text}") from None
    if not isinstance(contents, Mapping):
        raise ValueError(f"{path.name} should hold a state dict. Found {type(contents).__name__}.")
    for name in INSIDE:
        inner = contents.get(name)
        if isinstance(inner, Mapping) and any(isinstance(value, torch.Tensor) for value in inner.values()):
            return inner
    return contents


def _unwrapped(weights: Mapping[str, Any], wanted: set[str]) -> dict[str, Any]:
    """The weights by the names of the model, without what wrappers put before them.

    >>> _unwrapped({"module.0.weight": 1}, {"0.weight"})
    {'0.weight': 1}
    """
    names = dict(weights)
    changed = True
    while changed and not wanted <= set(names):
        changed = False
        for prefix in WRAPPERS:
            if names and all(name.startswith(prefix) for name in names):
                names = {name.removeprefix(prefix): value for name, value in names.items()}
                changed = True
    return names
