"""Wording: numbers, groups and lists as the words of a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiltmeter.fairness.estimate import Estimate
from tiltmeter.shown_text import minus, percent


def listed(words: Sequence[str], most: int = 8) -> str:
    """Words with commas and an "and"; of many, the first and how many more. Words with commas are set apart.

    >>> listed(["a", "b", "c"]), listed(["a"]), listed(list("abcd"), most=2), listed(["a, b", "c, d"])
    ('a, b and c', 'a', 'a, b and 2 more', 'a, b; c, d')
    """
    if any("," in word for word in words):
        more = [f"and {len(words) - most} more"] if len(words) > most else []
        return "; ".join([*words[:most], *more])
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def percents(*shares: float) -> list[str]:
    """Several shares with the same digits: one where the smallest is below 10 %.

    >>> percents(0.035, 0.143), percents(0.22, 0.43)
    (['3.5 %', '14.3 %'], ['22 %', '43 %'])
    """
    known = [abs(share) for share in shares if math.isfinite(share)]
    digits = 1 if known and min(known) < 0.0995 else 0
    return [percent(share, digits) for share in shares]


def points(share: float) -> str:
    """The size of a difference of shares in percentage points.

    >>> points(0.2109), points(-0.0131), points(0.01)
    ('21 points', '\N{MINUS SIGN}1.3 points', '1 point')
    """
    text = minus(100 * share, 0 if abs(share) >= 0.0995 else 1)
    text = text.removesuffix(".0")
    return f"{text} point{'' if text == '1' else 's'}"


def between(limits: Estimate, digits: int | None = None) -> str:
    """Limits in percentage points, the smaller first.

    >>> between(Estimate(0.21, 0.131, 0.284)), between(Estimate(0.013, 0.0071, 0.0192))
    ('13 to 28', '0.7 to 1.9')
    >>> between(Estimate(0.08, 0.002, 0.16))  # 0 lies outside, and is not printed
    '0.2 to 16.0'
    """
    if not limits.known:
        return "limits not known"
    places = (0 if max(abs(limits.low), abs(limits.high)) >= 0.0995 else 1) if digits is None else digits
    while limits.shown and places < 3 and min(abs(limits.low), abs(limits.high)) * 100 < 0.5 * 10.0**-places:
        places += 1
    return f"{minus(100 * limits.low, places)} to {minus(100 * limits.high, places)}"


def number(value: float) -> str:
    """A loss or another number that is no share: three digits after the point, or three figures where it is small.

    >>> number(0.15634), number(12.0), number(float("nan"))
    ('0.156', '12', 'no data')
    """
    if not math.isfinite(value):
        return "no data"
    text = f"{value:.3f}" if 0.1 <= abs(value) < 10 else f"{value:.3g}" if abs(value) < 1e4 else f"{value:.3e}"
    return text.replace("-", "\N{MINUS SIGN}")


def moment(time: float) -> str:
    """A step or time; thousands apart.

    >>> moment(2500.0), moment(0.04123), moment(5.643)
    ('2,500', '0.04123', '5.643')
    """
    return f"{int(time):,}" if float(time).is_integer() else f"{time:.4g}"


def when(clock: str, time: float) -> str:
    """A moment with its clock: "step 500", "t = 5.64"."""
    return f"{clock} {moment(time)}" if clock != "t" else f"t = {moment(time)}"
