"""The process of a slot: computes one cell after the other, and ends when the process that started it is gone.

Tasks come as lines of JSON on the standard input, answers go as lines of JSON to the standard output. Whatever a cell
function prints goes to the standard error instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from tiltmeter_lab.study.compute import Task, compute, take_back
from tiltmeter_lab.study.folder import Places


def main() -> None:
    """Answer tasks until the standard input ends."""
    # The answers keep the true standard output; for everybody else it is the standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _one_thread()
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    running: list[Task] = []
    threading.Thread(target=_listen, args=(tasks, running), daemon=True).start()
    try:
        _tell(answers, {"ready": os.getpid()})
        while True:
            task = tasks.get()
            running.append(task)
            answer = compute(task)
            running.clear()
            _tell(answers, asdict(answer))
    except OSError:  # nobody reads the answers any more
        _leave(running)


def _listen(tasks: queue.SimpleQueue[Task], running: list[Task]) -> None:
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):
            break  # the parent died while it wrote
        tasks.put(Task.from_json(json.loads(line)))
    _leave(running)


def _leave(running: list[Task]) -> NoReturn:
    """The parent closed the pipe or died: end at once, without Python's own end, which a thread that reads aborts."""
    # The cell is not to blame, so this try of it does not count.
    for task in running:
        with contextlib.suppress(OSError):
            take_back(Places(Path(task.place)), task.key)
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with everything that the cell started
    os._exit(1)


def _tell(answers: Any, said: dict[str, Any]) -> None:
    answers.write(json.dumps(said) + "\n")
    answers.flush()


def _one_thread() -> None:
    """One thread of linear algebra and of torch; torch is not imported for it, only told by its variable."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


if __name__ == "__main__":
    main()
