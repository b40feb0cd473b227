"""terminal: output of the verbs, without control sequences from names."""

from __future__ import annotations

import json
import os
import re
import select
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tiltmeter.shown_text import visible

if TYPE_CHECKING:
    from rich.console import Console

#: What a shell reports of a program that ended since its reader had gone (128 + SIGPIPE).
CODE = 141


def reader_gone() -> bool:
    """Whether stdout or stderr is a pipe that was closed at the other end."""
    return any(_gone(stream) for stream in (sys.__stdout__, sys.__stderr__))


def end_quietly() -> int:
    """Send what is still to be written to nowhere, so that the end of Python does not complain; the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None and _gone(stream):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
    return CODE


def _gone(stream: object) -> bool:
    try:
        place = stream.fileno()  # type: ignore[attr-defined]
        if not hasattr(select, "poll"):
            return True  # nothing to ask on this system: the error itself is the answer
        asked = select.poll()
        asked.register(place, 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0))
    except (AttributeError, OSError, ValueError):  # no stream, or one without a file
        return False


#: "Command "predict" parameter --variance requires 2 positional arguments. Only got 1." and its kin.
_FEW_VALUES = re.compile(
    r'(?:Command "[^"]*" parameter |Parameter )?"?(?P<flag>[^" ]+)"? requires (?P<count>\d+) positional arguments\.'
    r"(?: Only got (?P<got>\d+)\.)?"
)
_UNUSED = re.compile(r"Unused Tokens: \[(.*)\]\.")


def error_text(error: BaseException) -> str:
    """The sentence that a verb prints for this error.

    >>> error_text(IsADirectoryError(21, "Is a directory", "runs"))
    'runs: Is a directory.'
    >>> error_text(KeyError("No curve 'x'."))
    "No curve 'x'."
    """
    if isinstance(error, MemoryError):
        return (
            "This does not fit in the memory of this machine: ask for fewer evaluations, seeds, groups, classes "
            "or points."
        )
    if isinstance(error, RecursionError):
        return "This is nested too deeply to be read."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename or 'A file without a name'}: {error.strerror}."
    # str(KeyError) puts the message in quotes; its argument is the plain sentence.
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return _UNUSED.sub(r"Not understood: \1.", _FEW_VALUES.sub(_values, text))


def _values(found: re.Match[str]) -> str:
    return f"{found['flag']} needs {found['count']} values. Found {found['got'] or 'none'}."


#: A flag without a value and without a `--no-` form.
Switch = Annotated[bool, Parameter(negative="", show_default=False)]
Json = Annotated[bool, Parameter(negative="", show_default=False, help="Print the results as JSON.")]
Curve = Annotated[str, Parameter(help="The curve in which leaders are compared.")]
AskedCurve = Annotated[
    str | None,
    Parameter(help="The curve in which leaders are compared (default: what the question of the data asks for)."),
]
Level = Annotated[float, Parameter(help="How often any statement about leaders may be wrong.")]
To = Annotated[Path | None, Parameter(help="Save the result in this new run directory.")]
Save = Annotated[
    tuple[Path, ...],
    Parameter(
        negative_iterable=(),
        show_default=False,
        help="Draw a picture to this file (png, svg, pdf or html); may be repeated.",
    ),
]


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a result goes."""

    to: To = None
    save: Save = ()
    json: Json = False

    def say_saved(self) -> None:
        """Say where the run was saved, if it was."""
        if self.to is not None:
            print(f"Saved to {self.to}", file=sys.stderr)


#: The only codes that reach a terminal: the bold headers of our own tables, dim second lines and, on stderr, the start
#: of the line that progress rewrites.
STYLES, REWRITE = ("\x1b[1m", "\x1b[2m", "\x1b[0m"), ("\r",)


def print_result(text: str) -> None:
    """Print what was found: its first line, and the rest dim where a person reads it."""
    first, _, rest = text.partition("\n")
    print(first)
    if rest:
        print(f"\x1b[2m{rest}\x1b[0m" if sys.__stdout__ is not None and sys.__stdout__.isatty() else rest)


class VisibleStream:
    """A stream that writes text with its control characters made visible."""

    def __init__(self, stream: Any, kept: tuple[str, ...]) -> None:
        self._stream, self._kept = stream, kept
        self._codes = re.compile(f"({'|'.join(map(re.escape, kept))})")

    def write(self, text: str) -> int:
        parts = self._codes.split(text)
        self._stream.write("".join(part if part in self._kept else visible(part) for part in parts))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def safe_output() -> Iterator[None]:
    """Within this context, printed text cannot control the terminal, and a warning is one sentence."""

    def told(message: Warning | str, *_: object, **__: object) -> None:
        print(f"tiltmeter: {message}", file=sys.stderr)

    out: Any = VisibleStream(sys.stdout, STYLES)
    err: Any = VisibleStream(sys.stderr, REWRITE)
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.showwarning = told
        yield


def plain_console(width: int | None = None) -> Console:
    """A console for tables whose cells are plain text: brackets are not markup, and colons are not emoji."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_table(table: Any) -> None:
    """Print a table whose cells are plain text."""
    plain_console().print(table)


def print_rows(
    heads: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[str] | None = None, edge: bool = True
) -> None:
    """Print a table of plain text; numbers stand to the right: all but the columns under these `words` (None: none).

    Without an `edge` nothing stands around it, so that more fits in.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=edge, show_edge=edge)
    for head in heads:
        table.add_column(head, justify="left" if words is None or head in words else "right")
    for row in rows:
        table.add_row(*row)
    print_table(table)


def print_json(value: Any) -> None:
    """Print a result for machines."""
    print(json.dumps(value, indent=2, allow_nan=False))
