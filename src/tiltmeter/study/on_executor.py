"""on_executor: the cells in any executor of `concurrent.futures`, without limits of time and without retries."""

from __future__ import annotations

from concurrent.futures import Executor, Future

from tiltmeter.study.compute import Answer, Task, compute


class OnExecutor:
    """The executor stays open: it belongs to the caller."""

    width = 1000
    workers = None

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._futures: list[Future[Answer]] = []

    def submit(self, task: Task) -> Future[Answer]:
        future = self._executor.submit(compute, task)
        self._futures = [one for one in self._futures if not one.done()] + [future]
        return future

    def check(self) -> None:
        """A broken executor answers with its own error."""

    def close(self) -> None:
        for future in self._futures:
            future.cancel()
