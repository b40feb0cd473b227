"""Rehearsals: the user's own training, run on copies of the network before it is run for good.

Copies are trained one after another, or side by side by an executor, with the same result to the bit. Finished copies
are kept in a folder, if one is given, and taken up again after a kill.
"""

from __future__ import annotations

import pickle
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.bands import Promise, calibrated, where
from tiltmeter.forecast.task import ForecastTask, bare_copy, copy_seeds, made_model
from tiltmeter.progress import Progress
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.watch import Watch
from tiltmeter.record import Trajectory, load, save, stack
from tiltmeter.record.directory.disk import holds_run
from tiltmeter.record.directory.small_files import RUN
from tiltmeter.training.checkpoint import NAME
from tiltmeter.training.loop import train as train_model

#: From so many copies on their spread makes a band; a fewer than that are promised by a calibrated factor.
ENOUGH = 3
#: More than three groups, or batch normalisation, need so many copies for a promise over all evaluations.
MANY = 5
#: The folder of the copies, below that of the forecast.
COPIES = "copies"
#: Where the forecast is written before it is moved to its place.
WRITING = "writing"


@dataclass(frozen=True, eq=False)
class Means:
    """What is used for the work: an executor, a folder for finished copies, and whether to keep their weights."""

    progress: bool = True
    executor: Any = None
    to: Path | None = None
    keep_weights: bool = False


class Copy(NamedTuple):
    """One training, with everything that it needs in another process."""

    model: nn.Module
    train: GroupedData
    held_out: GroupedData
    recipe: Recipe
    watch: Watch
    seed: int
    to: Path | None
    keep_weights: bool
    validation: GroupedData | None = None


class Rehearsed(NamedTuple):
    """The runs of finished copies, and how many were asked for."""

    runs: list[Trajectory]
    wanted: int

    @property
    def interrupted(self) -> bool:
        return len(self.runs) < self.wanted

    def joined(self) -> Trajectory:
        """All copies in a dimension `seed`; one copy has none."""
        return stack(self.runs) if len(self.runs) > 1 else self.runs[0]


def rehearse(task: ForecastTask, seeds: Sequence[int], vary_weights: bool, means: Means) -> Rehearsed:
    """Train a copy for every seed. An interrupt (Ctrl-C) ends the work and keeps the copies that are finished."""

    def copies() -> Iterator[Copy]:
        for number, seed in enumerate(seeds):
            model = bare_copy(made_model(task.make, seed)) if vary_weights and task.make else task.fresh_model()
            folder = None if means.to is None else means.to / COPIES / str(number)
            yield Copy(
                *(model, task.train, task.held_out, task.fresh_recipe(), task.watch, seed, folder, means.keep_weights)
            )

    runs: list[Trajectory] = []
    try:
        with Progress(len(seeds), lambda done: f"Rehearsal {done} of {len(seeds)}") as tell:
            for run in in_turn(train_copy, copies(), means.executor):
                runs.append(run)
                if means.progress:
                    tell(len(runs))
    except KeyboardInterrupt:
        if not runs:
            raise
        print(f"Interrupted: {len(runs)} of {len(seeds)} rehearsals are finished.", file=sys.stderr)
    return Rehearsed(runs, len(seeds))


def rehearse_arms(
    tasks: Mapping[str, ForecastTask], seed: int, means: Means, validation: Mapping[str, GroupedData]
) -> Iterator[tuple[str, Trajectory | Exception]]:
    """One training for each of several settings, with the same seed, or why it cannot be trained.

    `validation` are the points that the models of some settings are fitted to after training. An interrupt ends with
    those that are finished.
    """
    copies = (
        Copy(
            *(task.fresh_model(), task.train, task.held_out, task.fresh_recipe(), task.watch, seed),
            *(None if means.to is None else means.to / COPIES / str(number), means.keep_weights, validation.get(name)),
        )
        for number, (name, task) in enumerate(tasks.items())
    )
    try:
        yield from zip(tasks, in_turn(train_arm, copies, means.executor), strict=True)
    except KeyboardInterrupt:
        print("Interrupted: only the trainings that are finished are compared.", file=sys.stderr)


def train_arm(copy: Copy) -> Trajectory | Exception:
    """The training of one copy; some refusals come only with the first batch, and end no other training."""
    try:
        return train_copy(copy)
    except (TypeError, ValueError) as error:
        return error


def train_copy(copy: Copy) -> Trajectory:
    """Train one copy, or take up what an earlier call has left of it."""
    if copy.to is not None and (copy.to / "end.json").exists():
        return cast(Trajectory, load(copy.to))
    if copy.to is not None:
        copy.to.parent.mkdir(parents=True, exist_ok=True)
    run = train_model(
        copy.model,
        copy.train,
        copy.held_out,
        copy.recipe,
        watch=copy.watch,
        seed=copy.seed,
        to=copy.to,
        resume=copy.to is not None and copy.to.exists(),
        validation=copy.validation,
    )
    if copy.to is not None and not copy.keep_weights:
        (copy.to / NAME).unlink(missing_ok=True)
    return run


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds a run or anything else but copies that were begun."""
    if not folder.is_dir() or {path.name for path in folder.iterdir()} - {COPIES, WRITING}:
        holds_run(folder, resume=False)


def save_beside_copies(ahead: Trajectory, folder: Path) -> None:
    """Save the forecast in the folder of its copies; the file that makes it a run comes last."""
    aside = folder / WRITING
    shutil.rmtree(aside, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    save(ahead, aside)
    for path in sorted(aside.iterdir(), key=lambda path: path.name == RUN):
        path.replace(folder / path.name)
    aside.rmdir()


def rehearsed_model(to: str | Path, copy: int, model: nn.Module) -> nn.Module:
    """A network of the same kind with the weights of a trained copy, kept by `forecast(..., to=, keep="weights")`."""
    place = Path(to) / COPIES / str(copy) / NAME
    if not place.exists():
        raise FileNotFoundError(f'{place} is not there: `forecast(..., to=..., keep="weights")` keeps the weights.')
    state: dict[str, Any] = torch.load(place, map_location="cpu", weights_only=True)
    trained = bare_copy(model)
    trained.load_state_dict(state["model"])
    return trained


def in_turn(work: Callable[[Any], Any], items: Iterator[Any], executor: Any) -> Iterator[Any]:
    """The results in the order of the items: one after another, or by the workers of an executor."""
    if executor is None:
        yield from map(work, items)
        return
    submit = checked_executor(executor)
    futures: list[Future[Any]] = []
    for item in items:
        try:
            pickle.dumps(item)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            first = str(error).strip().splitlines()[0]
            raise TypeError(
                f"`executor` sends the network and the settings to other processes, which needs functions and classes "
                f"of a module. Found: {first}"
            ) from None
        futures.append(submit(work, item))
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def checked_executor(executor: Any) -> Callable[..., Future[Any]]:
    """The function that hands work to an executor of concurrent.futures or to a Dask client."""
    if isinstance(executor, ThreadPoolExecutor):
        raise TypeError("`executor` should have processes: threads share torch's random stream. Found threads.")
    if type(executor).__module__.startswith("distributed.") and hasattr(executor, "get_executor"):
        return executor.get_executor(pure=False).submit  # type: ignore[no-any-return]
    if not isinstance(executor, Executor):
        raise TypeError(
            "`executor` should be None, a distributed.Client or an executor of concurrent.futures with processes. "
            f"Found {type(executor).__name__}."
        )
    return executor.submit


def workers_of(executor: Any) -> int:
    """How many trainings an executor runs side by side, as far as it says."""
    if executor is None:
        return 1
    if hasattr(executor, "nthreads"):
        return sum(executor.nthreads().values()) or 1
    return int(getattr(executor, "_max_workers", 1))


def rehearsal_promise(task: ForecastTask, copies: int, exact: bool) -> Promise:
    """What so many finished rehearsals promise."""
    times = {1: "once", 2: "twice"}.get(copies, f"{copies} times")
    if exact:
        return Promise("exact", 0.0, f"Rehearsed {times} with the run's own batches: exact on the same machine")
    if copies >= ENOUGH:
        needs_many = len(task.train.groups) > 3 or task.has_batch_normalisation
        since = 1.0 if needs_many and copies < MANY else 0.0
        return Promise("spread", since, f"Rehearsed {times}, 90 % band {where(since)}")
    factor = float(calibrated()["factors"]["one rehearsal, second half"])
    return Promise("calibrated", 0.5, f"Rehearsed {times}, 90 % band {where(0.5)}", factor)


def rest_promise(task: ForecastTask, copies: int, exact: bool) -> Promise:
    """What copies that go on from a training promise about its rest."""
    if exact:
        return replace(rehearsal_promise(task, 1, exact=True), sentence="The rest rehearsed with the run's own batches")
    factor = float(calibrated()["factors"]["one rehearsal, second half"])
    times = {1: "once", 2: "twice"}.get(copies, f"{copies} times")
    return Promise("calibrated", 0.5, f"The rest tried {times} from here, 90 % band {where(0.5)}", factor)


def forecast_by_rehearsals(task: ForecastTask, copies: int, vary: str, seed: int, means: Means) -> tuple[Any, ...]:
    """The runs of all copies, what they promise, and an account of the work."""
    exact = task.order_known and vary == "order"
    wanted = 1 if exact else copies
    seeds = [seed] if exact else copy_seeds(seed, wanted)
    made = rehearse(task, seeds, vary == "weights", means)
    account: dict[str, Any] = {
        "trainings": len(made.runs),
        "order": "the run's own" if task.order_known else "one for every copy",
        "weights": "any initial weights" if vary == "weights" else "these initial weights",
    }
    if made.interrupted:
        account["interrupted"] = f"{len(made.runs)} of {wanted} rehearsals were finished"
    if means.keep_weights and means.to is not None:
        account["kept"] = [f"{COPIES}/{number}/{NAME}" for number in range(len(made.runs))]
    return made.joined(), rehearsal_promise(task, len(made.runs), exact), account


def forecast_by_pilot(task: ForecastTask, steps: int, seed: int, means: Means) -> tuple[Any, ...]:
    """The first steps of the training of one copy; nothing is promised about the rest."""
    short = task.with_recipe(replace(task.recipe, steps=min(steps, task.steps), epochs=None))
    seeds = [seed] if task.order_known else copy_seeds(seed, 1)
    made = rehearse(short, seeds, False, means)
    order = "the run's own" if task.order_known else "one of its own"
    return made.joined(), None, {"trainings": short.steps / task.steps, "order": order}
