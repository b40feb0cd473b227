"""Outcome: what one experiment found at one scale, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

from tiltmeter_lab.claim import VERDICTS, Claim

State = Literal["run", "not run", "failed"]
#: The fields of a claim that may be NaN or infinite.
NUMBERS = ("statistic", "threshold", "error", "neutral", "freedom")
#: A table in plain text: title, header, rows.
TableText: TypeAlias = tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]


@dataclass(frozen=True)
class Outcome:
    """The claims of an experiment with their verdicts, and how they were obtained.

    >>> outcome = Outcome("demo", "A title", "A paper", "quick", 3, "2024-01-31", 1.5, "0.1", (), reason="No data.")
    >>> Outcome.from_json(outcome.to_json()) == outcome
    True

    `date` and `seconds` are those of the runs; loading stored runs does not change them. `runs` are the names of the
    runs and `pictures` maps titles to file names without suffix, both within `folder`. `tables` hold further numbers:
    (title, header, rows of text). `reason` says why an experiment was not run, or how it failed; `partial` how much of
    it was judged, if not all.
    """

    name: str
    title: str
    paper: str
    scale: str
    seeds: int
    date: str
    seconds: float
    version: str
    claims: tuple[Claim, ...]
    runs: tuple[str, ...] = ()
    pictures: tuple[tuple[str, str], ...] = ()
    tables: tuple[TableText, ...] = ()
    folder: str = ""
    state: State = "run"
    reason: str = ""
    partial: str = ""

    @property
    def variant(self) -> str:
        """The name of the folder: the scale, and the number of seeds if one was given."""
        return PurePath(self.folder).name or self.scale

    @property
    def sentence(self) -> str:
        """One line: which experiment, the verdicts, and how long it took."""
        if self.state != "run":
            return f"{self.name} ({self.scale}): {self.state}. {self.reason}"
        counts = ((sum(claim.verdict == verdict for claim in self.claims), verdict) for verdict in VERDICTS)
        verdicts = ", ".join(f"{count} {verdict}" for count, verdict in counts if count)
        many = f"{self.seeds} seed{'s' if self.seeds != 1 else ''}"
        some = f" In part: {self.partial}." if self.partial else ""
        return f"{self.name} ({self.scale}, {many}, {self.seconds:.0f} s): {verdicts or 'no claims'}.{some}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON that `from_json` reads back; NaN is written as null and infinity as "inf"."""
        plain: dict[str, Any] = asdict(self)
        plain["claims"] = [
            {
                **asdict(claim),
                **{name: _plain(getattr(claim, name)) for name in NUMBERS},
                "verdict": claim.verdict,
                "text": str(claim),
            }
            for claim in self.claims
        ]
        plain["runs"] = list(self.runs)
        plain["pictures"] = [list(pair) for pair in self.pictures]
        return plain

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Outcome:
        """The outcome that `to_json` wrote."""
        claims = []
        for stored in value["claims"]:
            fields = {name: part for name, part in stored.items() if name not in ("verdict", "text")}
            fields |= {name: float(fields[name]) for name in NUMBERS if fields.get(name) is not None}
            fields |= {name: math.nan for name in ("statistic", "threshold") if fields[name] is None}
            claims.append(Claim(**fields))
        return cls(
            **{
                **value,
                "claims": tuple(claims),
                "runs": tuple(value["runs"]),
                "pictures": tuple((str(title), str(file)) for title, file in value["pictures"]),
                "tables": tuple(
                    (title, tuple(header), tuple(tuple(row) for row in rows))
                    for title, header, rows in value.get("tables", ())
                ),
            }
        )


def _plain(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return str(value) if math.isinf(value) else float(value)
