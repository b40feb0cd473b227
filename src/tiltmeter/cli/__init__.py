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
from tiltmeter.plugins import plugin
from tiltmeter.version import __version__

#: Verb -> one line for the overview, by what one wants to do. A file is imported only when its verb is called.
GROUPS: dict[str, dict[str, str]] = {
    "Start": {
        "demo": "Show what tiltmeter does, on built-in examples; writes one HTML page.",
        "init": "Write a commented TOML file for your table.",
        "data": "List, download and check public data sets.",
        "explore": "Open a page in the browser: the theory with sliders, runs while they are written, forecasts.",
    },
    "Judge": {
        "train": "Train a network on grouped data, and report who leads and when that changes.",
        "forecast": "Forecast the group curves of a network before training, and how far to trust them.",
        "advise": "Rank interventions for your network and data before you train.",
        "evaluate": "Evaluate the checkpoints of a training on held-out points, as if a probe had watched it.",
        "discover": "Find groups nobody labelled that are worse off or learned later, with an error rate.",
        "show": "Show the contents of a run directory in words, as a table and as a picture.",
        "compare": "Compare runs: who leads, when that changes, the worst group, the gap over training.",
        "scorecard": "Judge interventions against the plain training: what changed, at what cost, and who paid.",
        "report": "Write runs, or a table of predictions, as one HTML page for a review; it works offline.",
        "gate": "Fail a CI job when a gap between groups is larger than allowed.",
        "export": "Export a run for other programs: tables, NetCDF, Zarr, TensorBoard or a model card.",
    },
    "Theory": {
        "predict": "Exact learning curves of every group: who leads, when that changes, and why.",
        "simulate": "Simulate SGD at finite d, with the exact distribution of runs, beside the theory.",
        "equilibrium": "Error of each group for the fully trained model, by number of samples, loss and weights.",
    },
    "Laboratory": {
        "measure": "Measure simplicity and group biases of a model during training, with null values.",
        "study": "Run a grid of settings that survives crashes, on this machine or on a Dask cluster.",
        "reproduce": "Run published experiments again and report, claim by claim, whether they hold.",
    },
}
#: Verbs for those who work on tiltmeter itself; they do not stand in the overview.
HIDDEN = {
    "doctor": "Report versions, threads, extras and data of this machine, and what is missing.",
    "bench": "Run the speed comparisons of a source checkout.",
}
VERBS = {**{verb: line for verbs in GROUPS.values() for verb, line in verbs.items()}, **HIDDEN}

#: Verb -> the example at the end of its help. `data` is a separate application and defines its own example.
EXAMPLES = {
    "demo": "tiltmeter demo",
    "predict": 'tiltmeter predict "rho=0.8, variance=(0.5, 1.5)" --lr 0.1 --save curves.svg',
    "simulate": "tiltmeter simulate centred-crossing --d 2000 --seeds 16 --against theory",
    "equilibrium": "tiltmeter equilibrium centred-crossing --samples 2 --ridge 0.3",
    "forecast": "tiltmeter forecast training.toml --best-weights worst",
    "advise": "tiltmeter advise training.toml --train",
    "train": "tiltmeter train training.toml --to runs/mine",
    "discover": "tiltmeter discover runs/mine --table people.csv --without income",
    "reproduce": "tiltmeter reproduce bias-crossing --to runs/reproduce",
    "measure": "tiltmeter measure effective-rank --save rank.svg",
    "explore": "tiltmeter explore runs",
    "evaluate": "tiltmeter evaluate weights --model make.py:make --data people.csv --label y --group sex --to runs/old",
    "show": "tiltmeter show runs/mine --curve error",
    "compare": "tiltmeter compare runs/forecast runs/mine",
    "scorecard": "tiltmeter scorecard runs/plain runs/balanced --save plane.svg",
    "report": "tiltmeter report runs/forecast runs/mine --out mine.html",
    "export": "tiltmeter export runs/mine mine.csv",
    "gate": "tiltmeter gate runs/mine --curve tpr --gap 0.05",
    "init": "tiltmeter init people.csv --label income --group sex",
    "doctor": "tiltmeter doctor",
    "bench": "tiltmeter bench predict",
}


def make_app(first: str = "") -> App:
    """The application with all its verbs; `first` is the one that is called, which a plugin may bring."""
    app = App(
        name="tiltmeter",
        version=__version__,
        help="Which group a model will favour, when during training, and why.",
        result_action="return_value",
    )
    headings = {name: Group(name, sort_key=place) for place, name in enumerate(GROUPS)}
    groups = {verb: headings[name] for name, verbs in GROUPS.items() for verb in verbs}
    for place, (verb, line) in enumerate(VERBS.items()):
        more: dict[str, Any] = {"help_epilogue": f"Example: `{EXAMPLES[verb]}`"} if verb in EXAMPLES else {}
        more |= {"show": False} if verb in HIDDEN else {"group": groups[verb]}
        brought = plugin(verb) if verb == first == "reproduce" else None
        app.command(brought or f"tiltmeter.cli.{verb}:{verb}", name=verb, help=line, sort_key=place, **more)
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
        code = make_app(given[0] if given else "")(given, exit_on_error=False, print_error=False)
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
        elif "pip install" in str(error):  # our own sentence about an extra
            print(f"tiltmeter: {error}", file=sys.stderr)
        else:
            raise
        return 2
    except KeyboardInterrupt:
        print("tiltmeter: interrupted.", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0
