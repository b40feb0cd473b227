"""The command line: `tiltmeter VERB`, one file per verb.

Every verb prints results on stdout, starting with a sentence in words. Progress goes to stderr. `--json` prints the
same results for machines. Invalid input ends with one sentence and exit code 2.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from cyclopts import App, CycloptsError, Group

from tiltmeter.cli.terminal import end_quietly, error_text, reader_gone, safe_output
from tiltmeter.cli.verb import Verb
from tiltmeter.plugins import VERBS, WITHOUT_LAB, plugins
from tiltmeter.version import __version__

#: Headings of the overview, in order.
HEADINGS = ("Start", "Judge", "Theory", "Laboratory")
#: Verb -> heading, one line for the overview, and an example; "" hides a verb from the overview. Other houses bring
#: their own. A file is imported only when its verb is called.
CORE: dict[str, Verb] = {
    "demo": Verb("Start", "Show what tiltmeter does, on built-in examples; writes one HTML page.", "demo"),
    "init": Verb("Start", "Write a commented TOML file for your table.", "init people.csv --label income --group sex"),
    "data": Verb("Start", "List, download and check public data sets."),
    "train": Verb(
        "Judge",
        "Train a network on grouped data, and report who leads and when that changes.",
        "train people.csv --to runs/mine",
    ),
    "forecast": Verb(
        "Judge",
        "Forecast who will be worse off before training: a table at once, a network by rehearsals.",
        "forecast people.csv",
    ),
    "why": Verb("Judge", "Say which property of a table makes the gap between groups.", "why people.csv"),
    "advise": Verb(
        "Judge", "Rank interventions for your network and data before you train.", "advise training.toml --train"
    ),
    "evaluate": Verb(
        "Judge",
        "Evaluate the checkpoints of a training on held-out points, as if a probe had watched it.",
        "evaluate weights --model make.py:make --data people.csv --label y --group sex --to runs/old",
    ),
    "discover": Verb(
        "Judge",
        "Find groups nobody labelled that are worse off or learned later, with an error rate.",
        "discover runs/mine --table people.csv --without income",
    ),
    "show": Verb(
        "Judge",
        "Show the contents of a run directory in words, as a table and as a picture.",
        "show runs/mine --curve error",
    ),
    "compare": Verb(
        "Judge",
        "Compare runs: who leads, when that changes, the worst group, the gap over training.",
        "compare runs/forecast runs/mine",
    ),
    "scorecard": Verb(
        "Judge",
        "Judge interventions against the plain training: what changed, at what cost, and who paid.",
        "scorecard runs/plain runs/balanced --save plane.svg",
    ),
    "report": Verb(
        "Judge",
        "Write runs, or a table of predictions, as one HTML page for a review; it works offline.",
        "report runs/forecast runs/mine --out mine.html",
    ),
    "gate": Verb(
        "Judge",
        "Fail a CI job when a gap between groups is larger than allowed.",
        "gate runs/mine --curve tpr --gap 0.05",
    ),
    "export": Verb(
        "Judge",
        "Export a run for other programs: tables, NetCDF, Zarr, TensorBoard or a model card.",
        "export runs/mine mine.csv",
    ),
    # For those who work on tiltmeter itself.
    "doctor": Verb("", "Report versions, threads, extras and data of this machine, and what is missing.", "doctor"),
    "bench": Verb("", "Run the speed comparisons of a source checkout.", "bench predict"),
}
#: Verbs of the laboratory, named where it is not installed.
OF_THE_LAB = ("measure", "study", "reproduce")


def verbs() -> dict[str, Verb]:
    """Every verb of the installed houses, by heading."""
    every = {**CORE, **{name: verb for house in plugins(VERBS) for name, verb in house.items()}}
    order = {heading: place for place, heading in enumerate(HEADINGS)}
    return dict(sorted(every.items(), key=lambda pair: order.get(pair[1].heading, len(order))))


def make_app() -> App:
    """The application with all its verbs."""
    app = App(
        name="tiltmeter",
        version=__version__,
        help="Which group a model will favour, when during training, and why.",
        result_action="return_value",
    )
    groups = {name: Group(name, sort_key=place) for place, name in enumerate(HEADINGS)}
    for place, (name, verb) in enumerate(verbs().items()):
        more: dict[str, Any] = {"help_epilogue": f"Example: `tiltmeter {verb.example}`"} if verb.example else {}
        more |= {"group": groups[verb.heading]} if verb.heading else {"show": False}
        app.command(verb.home or f"tiltmeter.cli.{name}:{name}", name=name, help=verb.line, sort_key=place, **more)
    app.register_install_completion_command()
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    given = sys.argv[1:] if argv is None else list(argv)
    try:
        # Help is our own text, in colours; everything else may contain names from data.
        with nullcontext() if not given or {"--help", "-h", "--version"} & set(given) else safe_output():
            code = _run(given)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        return end_quietly()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # help is printed by rich, which ends Python in this case
            return end_quietly()
        raise


def _run(given: Sequence[str]) -> int:
    try:
        app = make_app()
        if given and given[0] in OF_THE_LAB and given[0] not in app:
            raise ImportError(WITHOUT_LAB)
        code = app(given, exit_on_error=False, print_error=False)
    except BrokenPipeError as error:
        if reader_gone():
            raise
        print(f"tiltmeter: {error_text(error)}", file=sys.stderr)
        return 2
    except (CycloptsError, ValueError, TypeError, KeyError, OSError, MemoryError, RecursionError) as error:
        print(f"tiltmeter: {error_text(error)}", file=sys.stderr)
        return 2
    except ImportError as error:
        if error.name == "torch":
            print(f"tiltmeter: `tiltmeter {given[0]}` needs PyTorch: pip install 'tiltmeter[torch]'", file=sys.stderr)
        elif error.name == "numba":
            print(
                f"tiltmeter: `tiltmeter {given[0]}` needs exact theory: pip install 'tiltmeter[theory]'",
                file=sys.stderr,
            )
        elif "pip install" in str(error):  # our own sentence about an extra
            print(f"tiltmeter: {error}", file=sys.stderr)
        else:
            raise
        return 2
    except KeyboardInterrupt:
        print("tiltmeter: interrupted.", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0
