"""Study: a grid of runs that survives anything."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import xarray as xr

from tiltmeter.arguments import checked_seeds
from tiltmeter.record import Trajectory, load
from tiltmeter.shown_text import NotebookText, quoted, shortened
from tiltmeter_lab.study.compute import Answer, Task
from tiltmeter_lab.study.engine import Engine, OnDask, OnExecutor, OnSlots
from tiltmeter_lab.study.folder import CELLS, FAILED, STUDY, Failure, Places, read_study, write_study
from tiltmeter_lab.study.function_reference import FunctionReference
from tiltmeter_lab.study.grid import (
    Cell,
    checked_cells,
    checked_count,
    checked_factors,
    checked_limit,
    checked_only,
    factors_of,
    settings_of,
    text,
)
from tiltmeter_lab.study.status import ProgressLine, Status, status_of
from tiltmeter_lab.study.table import Reduce, build_table, last_values

#: Seconds between two looks at a cell that another driver computes.
PAUSE = 0.5
#: How many tasks in a row may get no answer before the driver gives up on the cluster.
LOST = 20


@dataclass(frozen=True, eq=False)
class Study(NotebookText):
    """A function of settings over a grid of settings, each computed once and kept.

    >>> from tempfile import TemporaryDirectory
    >>> from tiltmeter_lab.study.example_cell import final_gap
    >>> with TemporaryDirectory() as folder:
    ...     study = Study(final_gap, {"rho": [0.6, 0.9], "lr": [0.1, 0.2]}, seeds=2, to=f"{folder}/first")
    ...     print(study.run(progress=False, jobs=1))
    ...     print(study.table()["gap"].sel(rho=0.9, lr=0.1, seed=0).item() > 0)
    8 of 8 cells done, 0 failed, 0 left.
    True

    The function gets a dictionary with one value of every factor and `seed`. It should depend on nothing else.

    A cell's name is the hash of its settings, the function's name and the `version` that you declare.

    That a cell is complete does not mean that its code is today's: `status` counts those made by other code.

    Args:
        cell: Function at the top level of a module that takes settings and returns a Trajectory or a Dataset.
        factors: Named lists of values, JSON each; the grid holds every combination.
        seeds: Number of seeds, a list of them, or None for cells without a seed.
        to: Folder in which results are kept.
        cells: Explicit list of settings, instead of `factors`.
        fraction: Random part of the grid that is computed; None: all. A larger one contains a smaller one.
        version: Change it when the function changes its meaning: cells are then computed anew.
        tries: A cell whose process died so often is given up.
        limit: Seconds after which a cell is given up; None: never.
    """

    cell: Callable[[dict[str, Any]], Trajectory | xr.Dataset] | FunctionReference
    factors: Mapping[str, Sequence[Any]] | None = None
    seeds: int | Sequence[int] | None = 1
    to: str | os.PathLike[str] = "studies/study"
    cells: Sequence[Mapping[str, Any]] | None = None
    fraction: float | None = None
    version: str = "1"
    tries: int = 3
    limit: float | None = None

    def __post_init__(self) -> None:
        if (self.factors is None) == (self.cells is None):
            raise ValueError("A study takes `factors`, or an explicit list of `cells`: one of the two.")
        factors = checked_factors(factors_of(self.cells or ()) if self.factors is None else self.factors)
        object.__setattr__(self, "factors", factors)
        if self.cells is not None:
            object.__setattr__(self, "cells", checked_cells(self.cells, factors))
        if self.fraction is not None and not 0 < self.fraction <= 1:
            raise ValueError(f"`fraction` should lie above 0 and be at most 1. Found fraction = {self.fraction}.")
        if not isinstance(self.version, str):
            raise TypeError(f"`version` should be text. Found version = {quoted(self.version)}.")
        object.__setattr__(self, "seeds", None if self.seeds is None else checked_seeds(self.seeds))
        checked_count(self.tries, "tries")
        checked_limit(self.limit)
        object.__setattr__(self, "to", Path(self.to))
        _ = self.reference

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Study:
        """The study that a folder holds, from its `study.json`; its function is imported when it is run."""
        said = read_study(Path(folder))
        factors = None if said["cells"] is not None else said["factors"]
        settings = {name: said[name] for name in ("seeds", "cells", "fraction", "version", "tries", "limit")}
        try:
            return cls(FunctionReference.from_json(said["cell"]), factors, to=folder, **settings)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
            fact = shortened(str(error)).rstrip(".")
            raise ValueError(f"{Path(folder) / STUDY} is not a study that can be read: {fact}.") from None

    def __str__(self) -> str:
        """What it varies, how many cells that makes, and how many are done."""
        names = [f"{name} ({len(levels)})" for name, levels in self.levels.items()]
        grid = " x ".join(names) if self.cells is None else f"{len(self.cells)} given settings of {', '.join(names)}"
        part = f", a fraction of {self.fraction:g}" if self.fraction is not None else ""
        seeds = (
            ""
            if self.all_seeds is None
            else f", {len(self.all_seeds)} seed{'' if len(self.all_seeds) == 1 else 's'} each"
        )
        where = f"Study of {self.reference.text} in {self.to}"
        return f"{where}: {grid}{part}{seeds}. {status_of(self.all_cells, self.places, None)}"

    @cached_property
    def reference(self) -> FunctionReference:
        """The name of the cell function."""
        return self.cell if isinstance(self.cell, FunctionReference) else FunctionReference.of(self.cell)

    @cached_property
    def places(self) -> Places:
        """The folder of the study."""
        return Places(Path(self.to))

    @cached_property
    def all_cells(self) -> tuple[Cell, ...]:
        """Every cell that is asked for, with its name."""
        settings = settings_of(self.levels, self.cells, self.fraction, self.all_seeds)
        return tuple(Cell.of(one, self.reference.text, self.version) for one in settings)

    def run(
        self,
        executor: Any = None,
        progress: bool = True,
        *,
        jobs: int | None = None,
        only: Mapping[str, Any] | None = None,
        retry_failed: bool = False,
        fail_fast: bool = False,
    ) -> Status:
        """Compute what is missing, and say how the study stands then.

        Without an executor, `jobs` processes of this machine (default: one for each core) compute the cells. A process
        that dies costs its own cell one try. A `distributed.Client` sends the cells to a Dask cluster, where the same
        holds. Any executor of `concurrent.futures` will do, but it knows neither `tries` nor `limit`.

        `only` keeps cells with these values, as in {"width": 64}. Cells that failed stay failed unless `retry_failed`.
        Several drivers may run the same study at once. An interrupt or a killed driver loses the cells in flight.
        """
        if isinstance(self.cell, FunctionReference):
            found = replace(self, cell=self.cell.find(), factors=None if self.cells is not None else self.factors)
            return found.run(executor, progress, jobs=jobs, only=only, retry_failed=retry_failed, fail_fast=fail_fast)
        tasks = self._tasks(only, retry_failed)
        write_study(self.places.root, self._said())
        self.places.make()
        line = ProgressLine(len(self.all_cells), len(self.all_cells) - len(tasks), progress)
        if tasks:
            with suppress(FailFast):
                drive(tasks, self.places, self._engine(executor, jobs), line, fail_fast)
        self.places.tidy()
        return status_of(self.all_cells, self.places, None)

    def status(self) -> Status:
        """How many cells are done, failed, running and left."""
        return status_of(self.all_cells, self.places, self.reference.fingerprint())

    def failures(self) -> tuple[Failure, ...]:
        """The cells that failed, each with its error."""
        failed = self.places.keys(FAILED) - self.places.keys(CELLS)
        return tuple(Failure.read(self.places.failure(cell.key)) for cell in self.all_cells if cell.key in failed)

    def results(self) -> Iterator[tuple[dict[str, Any], Trajectory | xr.Dataset]]:
        """Settings and result of every complete cell, one after the other."""
        done = self.places.keys(CELLS)
        for cell in self.all_cells:
            if cell.key in done:
                yield dict(cell.settings), load(self.places.result(cell.key))

    def table(self, reduce: Reduce = last_values) -> xr.Dataset:
        """All results as one Dataset over factors and seeds; NaN where a cell failed or is missing.

        `reduce` makes numbers, or small labelled arrays, of one result. Without it, a Dataset is taken as it is, and of
        a Trajectory the last reading of every curve.
        """
        return build_table(self.levels, self.all_seeds, self.results(), reduce)

    @property
    def levels(self) -> dict[str, list[Any]]:
        """The values of every factor."""
        assert isinstance(self.factors, dict)
        return self.factors

    @property
    def all_seeds(self) -> tuple[int, ...] | None:
        """The seeds that every setting has; None for cells without one."""
        assert self.seeds is None or isinstance(self.seeds, tuple)
        return self.seeds

    def _tasks(self, only: Mapping[str, Any] | None, retry_failed: bool) -> list[Task]:
        wanted = checked_only(only or {}, {**self.levels, "seed": list(self.all_seeds or ())})
        done, failed = self.places.keys(CELLS), self.places.keys(FAILED)
        place, fingerprint = str(self.places.root.resolve()), self.reference.fingerprint()
        tasks = []
        for cell in self.all_cells:
            if cell.key in done or not all(text(cell.settings[name]) in values for name, values in wanted.items()):
                continue
            if cell.key in failed:
                if not retry_failed:
                    continue
                self.places.failure(cell.key).unlink(missing_ok=True)
            settings = (cell.settings, self.reference, fingerprint, self.tries, self.limit)
            tasks.append(Task(place, cell.key, *settings))
        return tasks

    def _engine(self, executor: Any, jobs: int | None) -> Engine:
        if executor is None:
            return OnSlots(jobs)
        if jobs is not None:
            raise ValueError("`jobs` is the number of processes of this machine: leave it out with an executor.")
        if type(executor).__module__.startswith("distributed.") and hasattr(executor, "submit"):
            return OnDask(executor)
        if not isinstance(executor, Executor):
            kind = type(executor).__name__
            raise TypeError(
                f"`executor` should be None, a distributed.Client or an executor of concurrent.futures. Found {kind}."
            )
        if self.limit is not None:
            kind = type(executor).__name__
            raise ValueError(f"`limit` is kept by executor=None and by Dask. Found a {kind}, which cannot end a cell.")
        return OnExecutor(executor)

    def _said(self) -> dict[str, Any]:
        return {
            "cell": self.reference.to_json(),
            "fingerprint": self.reference.fingerprint(),
            "version": self.version,
            "factors": self.levels,
            "cells": None if self.cells is None else list(self.cells),
            "fraction": self.fraction,
            "seeds": None if self.all_seeds is None else list(self.all_seeds),
            "tries": self.tries,
            "limit": self.limit,
        }


class FailFast(Exception):
    """A cell failed and the caller asked to stop then."""


def drive(tasks: Sequence[Task], places: Places, engine: Engine, line: ProgressLine, fail_fast: bool = False) -> None:
    """Compute all of them. Ends early by an error of the storage, of the engine, by an interrupt or by `fail_fast`."""
    waiting, elsewhere = deque(tasks), deque[Task]()
    running: dict[Future[Answer], Task] = {}
    answered: SimpleQueue[Future[Answer]] = SimpleQueue()
    lost = 0
    check_again = 0.0
    try:
        while waiting or elsewhere or running:
            engine.check()
            if elsewhere and time.monotonic() >= check_again:
                check_again = time.monotonic() + PAUSE
                _settle(elsewhere, waiting, places, line)
            while waiting and len(running) < engine.width:
                task = waiting.popleft()
                future = engine.submit(task)
                running[future] = task
                future.add_done_callback(answered.put)
            with suppress(Empty):
                future = answered.get(timeout=PAUSE if running else PAUSE / 5)
                task, answer = running.pop(future), _answer(future)
                lost = lost + 1 if answer.state in ("lost", "stopped") else 0
                if answer.state == "done":
                    line.done(task.settings, answer.seconds)
                elif answer.state == "failed":
                    line.failed(task.settings, answer.error)
                    if fail_fast:
                        raise FailFast(answer.error)
                elif answer.state == "storage":
                    raise OSError(f"The study stopped. {answer.error} Complete cells are kept: repeat the command.")
                elif answer.state == "busy":
                    elsewhere.append(task)
                else:
                    engine.check()
                    if lost > LOST:
                        raise ConnectionError(
                            f"The study stopped: {lost} tasks in a row got no answer ({answer.error})."
                        )
                    waiting.append(task)
            if line.due():
                left = [task.settings for task in (*waiting, *elsewhere, *running.values())]
                line.tell(left, engine.workers)
    finally:
        engine.close()
        line.close()


def _settle(elsewhere: deque[Task], waiting: deque[Task], places: Places, line: ProgressLine) -> None:
    """Cells of another driver: done, failed, or to be asked for again, since their process may have died."""
    done, failed = places.keys(CELLS), places.keys(FAILED)
    for _ in range(len(elsewhere)):
        task = elsewhere.popleft()
        if task.key in done:
            line.done(task.settings, 0.0)
        elif task.key in failed:
            line.failed(task.settings, "It failed in another driver.")
        else:
            waiting.append(task)


def _answer(future: Future[Answer]) -> Answer:
    try:
        return future.result()
    except CancelledError:
        return Answer("lost", error="the task was cancelled")
    except BrokenExecutor as error:
        raise RuntimeError(
            "The executor lost all its cells with one worker. Complete cells are kept: repeat the command; with "
            "executor=None only the cell of a dead process is lost."
        ) from error
