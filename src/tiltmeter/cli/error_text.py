"""error_text: the sentence of an error, in words that need no Python."""

from __future__ import annotations

import re

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
        return "This does not fit in the memory of this machine: ask for fewer looks, seeds, groups, classes or points."
    if isinstance(error, RecursionError):
        return "This is nested too deeply to be read."
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename or 'A file without a name'}: {error.strerror}."
    # str(KeyError) puts the message in quotes; its argument is the plain sentence.
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return _UNUSED.sub(r"Not understood: \1.", _FEW_VALUES.sub(_values, text))


def _values(found: re.Match[str]) -> str:
    return f"{found['flag']} needs {found['count']} values. Found {found['got'] or 'none'}."
