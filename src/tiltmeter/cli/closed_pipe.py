"""closed_pipe: the end of a verb whose output nobody reads any more, as after `tiltmeter report ... | head`."""

from __future__ import annotations

import os
import select
import sys

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
