"""drive: hand the cells of a study to an engine until each is done or failed, with other drivers at it or not."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import suppress
from queue import Empty, SimpleQueue

from tiltmeter.study.compute import Answer, Task
from tiltmeter.study.engine import Engine
from tiltmeter.study.folder import CELLS, FAILED, Places
from tiltmeter.study.status import ProgressLine

#: Seconds between two looks at a cell that another driver computes.
PAUSE = 0.5
#: How many tasks in a row may get no answer before the driver gives up on the cluster.
LOST = 20


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
