"""lempel_ziv: the size of a sequence as the number of phrases that it is parsed into (Lempel and Ziv, 1978)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


def lempel_ziv(symbols: Iterable[Hashable]) -> int:
    """Phrases after one pass: each is the shortest not met before, and an unfinished last one is not counted.

    A constant sequence of n symbols has about the square root of 2 n phrases, a random one about n / log n: a size
    means little except beside those of the same length.

    >>> lempel_ziv("1001111011000010"), lempel_ziv("10" * 8), lempel_ziv("0" * 1024)
    (8, 7, 44)
    """
    # A phrase is a phrase met before and one more symbol, so that a pair of its number and that symbol names it.
    numbers: dict[tuple[int, Hashable], int] = {}
    phrase = 0
    for symbol in symbols:
        longer = numbers.get((phrase, symbol))
        if longer is None:
            numbers[phrase, symbol] = len(numbers) + 1
            phrase = 0
        else:
            phrase = longer
    return len(numbers)
