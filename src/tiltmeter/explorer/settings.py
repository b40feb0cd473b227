"""Settings: what an explorer serves, where it listens, and what it allows."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

LOOPBACK = "127.0.0.1"
#: Where tables that the page sends and trainings that it starts are kept, below the folder.
PLACE = "from-explorer"
#: The one address that takes a file, and the most bytes of it.
UPLOAD, LARGEST_TABLE = "/api/table", 2**26
#: The most bytes that all files which the page sends may take together.
ALL_TABLES = 2**29


@dataclass(frozen=True)
class Settings:
    """One explorer. It is read-only unless `allow_runs`; away from the loopback address it needs a `token`.

    `once` is another token, good for one visit: the address with it stands on the command line of the browser, where
    every user of the machine can read it.
    `reader` names the function that makes an `Experiment` of a TOML file, as "module:function".

    >>> sorted(Settings(Path("runs"), port=8765).hosts)
    ['127.0.0.1:8765', '[::1]:8765', 'localhost:8765']
    """

    folder: Path
    port: int
    host: str = LOOPBACK
    token: str | None = None
    allow_runs: bool = False
    reader: str | None = None
    once: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"`port` should lie between 0 (any) and 65535. Found port = {self.port}.")
        if not self.token and not is_loopback(self.host):
            raise ValueError(
                f"`host` should be the loopback address unless there is a token. Found host = {self.host!r}."
            )

    @property
    def hosts(self) -> frozenset[str]:
        """Every value of the Host header that means this server; any other name was made to point here."""
        names = [LOOPBACK, "localhost", "[::1]"] if is_loopback(self.host) else [in_url(self.host)]
        return frozenset(f"{name}:{self.port}" for name in names)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return self._with(self.token)

    @property
    def first_visit(self) -> str:
        """The address for the browser that is opened."""
        return self._with(self.once if self.token else None)

    def _with(self, token: str | None) -> str:
        return f"http://{in_url(self.host)}:{self.port}/" + (f"?token={token}" if token else "")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach this address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def in_url(host: str) -> str:
    """An address as it stands in a URL, IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host.lower()
