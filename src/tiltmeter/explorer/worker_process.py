"""The process of a `Worker`: reads jobs as JSON lines, does one after the other, writes answers."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tiltmeter.plugins import PARTS, WITHOUT_LAB, plugin

#: Every job by its name. Nothing else can be asked for. The module `evidence` is brought by tiltmeter-lab.
JOBS = {
    "drawing library": "tiltmeter.plot.offline_page:drawing_library",
    "theory": "tiltmeter.explorer.theory_answers:theory_answers",
    "verdicts": "evidence:verdict_answers",
    "picture": "evidence:verdict_picture",
    "run quick": "evidence:run_quick",
    "tables": "tiltmeter.explorer.tables:table_rows",
    "columns": "tiltmeter.explorer.tables:table_columns",
    "task": "tiltmeter.explorer.tables:table_written",
    "sources": "tiltmeter.explorer.what_if_sources:what_if_sources",
    "what if": "tiltmeter.explorer.what_if:what_if_start",
    "forecast": "tiltmeter.explorer.what_if:what_if_forecast",
    "saved forecast": "tiltmeter.explorer.what_if:saved_forecast",
    "best weights": "tiltmeter.explorer.what_if:best_weights_found",
    "compare interventions": "tiltmeter.explorer.what_if:interventions_compared",
    "find groups": "tiltmeter.explorer.found_groups:groups_found",
    "train": "tiltmeter.explorer.what_if:train_bent",
    "studies": "studies:study_rows",
    "study": "studies:study_answers",
    "study shares": "studies:study_shares",
    "rows": "tiltmeter.explorer.run_rows:run_rows",
    "alike": "tiltmeter.explorer.run_rows:runs_alike",
    "curves": "tiltmeter.explorer.run_curves:run_curves",
    "nowcasts": "tiltmeter.explorer.nowcasts:run_nowcasts",
    "summaries": "tiltmeter.explorer.run_judgement:run_summaries",
    "judgement": "tiltmeter.explorer.run_judgement:run_judgement",
    "report": "tiltmeter.explorer.run_judgement:run_report",
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints does not get among the answers
    os.nice(5) if hasattr(os, "nice") else None
    warnings.simplefilter("ignore")
    waiting: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(waiting,), daemon=True).start()

    def tell(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    while True:
        asked = json.loads(waiting.get())
        tell(_done(asked["job"], asked["settings"], lambda progress: tell({"progress": progress})))


def _listen(waiting: queue.Queue[str]) -> None:
    """End with the server, also in the middle of a job."""
    for line in sys.stdin:
        waiting.put(line)
    os._exit(0)


def _done(job: str, settings: dict[str, Any], tell: Callable[[Any], None]) -> dict[str, Any]:
    module, _, name = JOBS[job].partition(":")
    try:
        home = import_module(module) if "." in module else plugin(PARTS, module)
        if home is None:
            raise ValueError(WITHOUT_LAB)
        work = getattr(home, name)
        if "tell" in getattr(work, "__annotations__", {}):
            settings = {**settings, "tell": tell}
        return {"answer": finite(work(**settings))}
    except Exception as error:  # the process goes on; the page shows what happened
        return {"error": sentence_of(error)}


def sentence_of(error: Exception) -> str:
    """The text of an error that we raised; that of an error from a library never reaches a page."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    if isinstance(error, (ValueError, TypeError, KeyError, OSError, ImportError)) and text.endswith((".", ".)", "?")):
        return text
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return "This cannot be worked out here. `tiltmeter show` on the command line says more."


def finite(value: Any) -> Any:
    """The same for JSON: NaN and infinity become null."""
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {str(key): finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return value


if __name__ == "__main__":
    main()
