"""Crossings in words: who leads a pair, who leads all groups, and from when on nobody does."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from tiltmeter.analysis.difference import ALL
from tiltmeter.analysis.pairs import ROUNDING, Pair
from tiltmeter.names import NOBODY
from tiltmeter.visible_text import group_name


class Passed(Protocol):
    """A change of leader of one pair."""

    @property
    def time(self) -> float: ...
    @property
    def pair(self) -> Pair: ...
    @property
    def leader_after(self) -> Hashable: ...


def ahead_of_all(leaders: Mapping[Pair, Hashable]) -> Hashable:
    """Return the group that leads in every pair it belongs to; "" if there is none.

    Where groups are compared with the mean of all: the one group that is left if all others are behind the mean.

    >>> ahead_of_all({("a", ALL): "a", ("b", ALL): ALL}), ahead_of_all({("a", ALL): "a", ("b", ALL): "b"})
    ('a', '')
    """
    if any(pair[1] == ALL for pair in leaders):
        possible = [pair[0] for pair, leader in leaders.items() if leader != ALL]
        return possible[0] if len(possible) == 1 else NOBODY
    behind = {group for pair, leader in leaders.items() for group in pair if group != leader}
    found = [group for group in dict.fromkeys(leaders.values()) if group != NOBODY and group not in behind]
    return found[0] if found else NOBODY


def crossing_sentence(found: Sequence[Passed], first: Mapping[Pair, Hashable], clock: str) -> str:
    """Say who leads until when, from the first leader of every pair and the changes in order of time.

    With several pairs, say who is ahead of all others, then each pair.
    """
    pairs = list(first)
    if len(pairs) == 1:
        if first[pairs[0]] == NOBODY:
            return f"Neither {group_name(pairs[0][0])} nor {group_name(pairs[0][1])} is ever shown to lead."
        return f"{_in_turn(first[pairs[0]], [(one.time, one.leader_after) for one in found], clock)}."
    now, turns = dict(first), []
    for one in found:
        before, now[one.pair] = ahead_of_all(now), one.leader_after
        if ahead_of_all(now) != before:
            turns.append((one.time, ahead_of_all(now)))
    start = ahead_of_all(first)
    text = f"Ahead of all others: {_in_turn(start, turns, clock)}"
    once = {start, *(leader for _, leader in turns)}
    never = [group for group in dict.fromkeys(g for pair in pairs for g in pair) if group not in once]
    text += f"; never {' or '.join(map(group_name, never))}." if never else "."
    if not found:
        return f"{text} No change of leader between any two groups."
    quiet = []
    for pair in pairs:
        own = [(one.time, one.leader_after) for one in found if one.pair == pair]
        a, b = map(group_name, pair)
        if own:
            text += f" {a} and {b}: {_in_turn(first[pair], own, clock)}."
        else:
            quiet.append(f"{a} and {b}")
    return f"{text} No change between {', '.join(quiet)}." if quiet else text


def equal_from(start: float | None, resolution: float, clock: str) -> str:
    """Say from when on all gaps are too small to be told apart; nothing if they never are."""
    if start is None:
        return ""
    why = "rounding" if resolution <= ROUNDING else "the error of the integration"
    return f" From {clock} = {start:.4g} on, no leader is known: gaps are below {resolution:.0e} ({why})."


def _in_turn(first: Hashable, changes: Iterable[tuple[float, Hashable]], clock: str) -> str:
    """Say who leads, in turn."""
    turns = list(changes)
    if not turns:
        return f"{_who(first)} leads throughout"
    parts = [f"{_who(first)} leads until {clock} = {turns[0][0]:.4g}"]
    parts += [f"then {_who(who)} until {clock} = {end:.4g}" for (_, who), (end, _) in pairwise(turns)]
    return ", ".join([*parts, f"then {_who(turns[-1][1])}"])


def _who(group: Hashable) -> str:
    return "nobody" if group == NOBODY else group_name(group)
