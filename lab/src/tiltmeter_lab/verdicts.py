"""verdicts: the outcomes of all experiments as one HTML page, and in words."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import tiltmeter as tm
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.reproduce import PICTURES

HEADER = ("claimed", "measured", "asked", "verdict")
OVERVIEW = ("experiment", "scale", "seeds", "took", "date", "claims that hold")
#: The most bytes of one picture in the documentation, and the sizes tried until it fits.
MOST_BYTES, SIZES = 60_000, (2.0, 1.5, 1.25, 1.0, 0.75, 0.5)


def write_verdicts(outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> Path:
    """Write one page that opens offline: every claim with its verdict, how it was obtained, and the pictures."""
    overview = tm.results.page.Table(OVERVIEW, [overview_row(one) for one in outcomes])
    sections = [tm.results.page.Section("In short", [in_short(outcomes)], [overview])]
    if failing := against(outcomes):
        sections.append(
            tm.results.page.Section(
                "What does not hold", tables=[tm.results.page.Table(("experiment", "claimed", "measured"), failing)]
            )
        )
    for one in outcomes:
        text = [f"{one.paper}.".removeprefix("."), made(one).replace("`", "")]
        charts = [_Drawn(spec) for _, spec in drawn_specs(one)]
        tables = [tm.results.page.Table(HEADER, [row(claim) for claim in one.claims])]
        tables += [tm.results.page.Table(header, rows) for _, header, rows in one.tables]
        sections.append(
            tm.results.page.Section(f"{heading(one)}: {one.title}", [line for line in text if line], tables, charts)
        )
    return tm.results.page.write_page(
        Path(path), "What was published, and what was found", sections, f"tiltmeter {tm.__version__}"
    )


def in_short(outcomes: Sequence[Outcome]) -> str:
    """Return, in a sentence or two, how many claims hold.

    >>> in_short([])
    '0 experiments: 0 claims hold, 0 do not, 0 were not run.'
    """
    claims = [claim for one in outcomes if one.state != "failed" for claim in one.claims]
    words = [claim.verdict for claim in claims]
    text = counted_in_words(len(outcomes), words, sum(claim.close for claim in claims))
    if failed := [one.name for one in outcomes if one.state == "failed"]:
        text += f" Failed: {', '.join(failed)}."
    return text


def counted_in_words(experiments: int, verdicts: Sequence[str], close: int) -> str:
    """How many of these verdicts say what, and how many of them are close."""
    hold, fail, rest = (verdicts.count(word) for word in ("holds", "does not hold", "not run"))
    text = (
        f"{_number(experiments, 'experiment')}: {_number(hold, 'claim')} {'holds' if hold == 1 else 'hold'}, "
        f"{fail} {'does' if fail == 1 else 'do'} not, {rest} {'was' if rest == 1 else 'were'} not run."
    )
    if close:
        text += f" Of these verdicts {_number(close, 'is', 'are')} within two standard errors of the threshold."
    return text


def _number(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"


def overview_row(outcome: Outcome) -> tuple[str, ...]:
    """An outcome as cells of the overview."""
    took = f"{outcome.seconds:.0f} s" if outcome.state == "run" else ""
    scale = f"{outcome.scale}, in part" if outcome.partial else outcome.scale
    return outcome.name, scale, str(outcome.seeds or ""), took, outcome.date, counted(outcome)


def against(outcomes: Sequence[Outcome]) -> list[tuple[str, str, str]]:
    """Return the claims that do not hold, in one table."""
    return [
        (one.name, claim.sentence, row(claim)[1])
        for one in outcomes
        for claim in one.claims
        if claim.verdict == "does not hold"
    ]


def counted(outcome: Outcome) -> str:
    """How many of the claims that were tested hold."""
    if outcome.state != "run":
        return outcome.state
    tested = [claim for claim in outcome.claims if claim.verdict != "not run"]
    return f"{sum(claim.holds for claim in tested)} of {len(tested)}"


def row(claim: Claim) -> tuple[str, str, str, str]:
    """A claim as cells of the table."""
    if claim.verdict == "not run":
        return claim.sentence, "", "", f"not run: {claim.reason}"
    what = f"{claim.what}{'?' if claim.rule == 'so' else ':'} {claim.measured}"
    over = f", {claim.seeds} seeds" if claim.seeds > 1 else ""
    note = f". {claim.where}" if claim.where else ""
    return claim.sentence, what + over, claim.asked, claim.decision + note


def made(outcome: Outcome) -> str:
    """Return how an outcome was obtained, in a sentence."""
    if outcome.state != "run":
        return f"{outcome.state.capitalize()} ({outcome.scale}, {outcome.date}): {outcome.reason}"
    seeds = f"{outcome.seeds} seed{'s' if outcome.seeds != 1 else ''}"
    asked = "" if outcome.scale == "quick" else f" --scale {outcome.scale}"
    asked += f" --seeds {outcome.seeds}" if outcome.variant.endswith("-seeds") else ""
    some = f" An interrupted run, judged in part (`--partial`): {outcome.partial}." if outcome.partial else ""
    return (
        f"Scale {outcome.scale}, {seeds}, {outcome.seconds:.0f} s, {outcome.date}, tiltmeter {outcome.version}: "
        f"`tiltmeter reproduce {outcome.name}{asked}`.{some}"
    )


def small_png(spec: dict[str, Any]) -> bytes:
    """Return a picture as PNG, in the largest size below the limit."""
    import vl_convert

    for size in SIZES:
        data = _few_colours(vl_convert.vegalite_to_png(spec, scale=size))
        if len(data) < MOST_BYTES:
            return data
    raise ValueError(f"A picture should be smaller than {MOST_BYTES} bytes. Found {len(data)} at its smallest size.")


def _few_colours(png: bytes) -> bytes:
    """Return the picture in 64 colours, a third of the size; unchanged if Pillow is not installed."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        return png
    flat = Image.open(BytesIO(png)).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    buffer = BytesIO()
    flat.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


class _Drawn:
    """A stored Vega-Lite specification, in the form in which a page takes charts."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        return self._spec


def drawn_specs(outcome: Outcome) -> list[tuple[str, dict[str, Any]]]:
    """Titles and specifications of the stored pictures."""
    folder = Path(outcome.folder) / PICTURES
    found = []
    for title, file in outcome.pictures:
        spec = json.loads((folder / f"{file}.json").read_text(encoding="utf-8"))
        # Alternative text is not visible, so a chart without a title gets one.
        found.append((title, spec if "title" in spec else {**spec, "title": {"text": title, "anchor": "start"}}))
    return found


def heading(outcome: Outcome) -> str:
    """Name the section of an outcome."""
    return outcome.name if outcome.variant == "quick" else f"{outcome.name} ({outcome.variant})"
