"""visible: text of users as it may be shown anywhere, with nothing in it that a terminal or a page would obey."""

from __future__ import annotations

import re
from collections.abc import Hashable

#: Control characters except line feed and tab, line and paragraph separators (they end a text in expressions of Vega),
#: marks that reverse the direction of writing, halves of characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""The text with every character that is obeyed rather than shown written as its escape.

    >>> print(visible("a\x1b[31m\u202eb"))
    a\x1b[31m\u202eb
    """
    return _HIDDEN.sub(lambda found: repr(found[0])[1:-1] if found[0] != "\x7f" else r"\x7f", text)


def group_name(group: Hashable) -> str:
    """A group label as text; the parts of an intersection of attributes (a tuple) are joined.

    >>> group_name(("young", "rural")), group_name(1)
    ('young & rural', '1')
    """
    return visible(" & ".join(map(str, group)) if isinstance(group, tuple) else str(group))
