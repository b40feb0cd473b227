"""Verb: what the command line knows of a verb before its file is imported."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """The heading it stands under, its line in the overview, an example of its arguments, and its function.

    Without `home` (an address, as "package.module:function") the function is in a file of this folder with the verb's
    name.
    """

    heading: str
    line: str
    example: str = ""
    home: str = ""
