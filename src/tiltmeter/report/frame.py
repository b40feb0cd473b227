"""Frame: where things stand in a picture of one width."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """Where things stand in a picture of one width, in pixels."""

    width: float
    left: float
    right: float
    top: float = 26.0
    height: float = 300.0

    @property
    def room(self) -> float:
        return self.width - self.left - self.right

    @property
    def bottom(self) -> float:
        return self.top + self.height


WIDE = Frame(570.0, 112.0, 132.0, height=280.0)
NARROW = Frame(360.0, 76.0, 84.0, height=220.0)


#: The width of a letter of a bold label and of a plain one, in pixels.
BOLD, PLAIN = 7.8, 6.3


def short(name: str, room: float, letter: float = BOLD) -> str:
    """A name cut to fit a room of so many pixels.

    >>> short("Female", 100.0), short("Amer-Indian-Eskimo", 70.0)
    ('Female', 'Amer-In…')
    """
    most = max(3, int(room / letter))
    return name if len(name) <= most else f"{name[: most - 1]}…"
