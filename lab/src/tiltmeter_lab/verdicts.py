"""verdicts: the outcomes of all experiments as one HTML page, and in words."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import tiltmeter as tm
from tiltmeter_lab.claim import VERDICTS, Claim
from tiltmeter_lab.origins import ORIGINS, PUBLISHED, origin_of
from tiltmeter_lab.outcome import Outcome
from tiltmeter_lab.reproduce import PICTURES

HEADER = ("claimed", "from", "measured", "asked", "verdict")
OVERVIEW = ("experiment", "scale", "seeds", "took", "date", *VERDICTS)
#: The most bytes of one picture in the documentation, and the sizes tried until it fits.
MOST_BYTES, SIZES = 60_000, (2.0, 1.5, 1.25, 1.0, 0.75, 0.5)


def write_verdicts(outcomes: Sequence[Outcome], path: str | os.PathLike[str]) -> Path:
    """Write one page that opens offline: every claim with its verdict, how it was obtained, and the pictures."""
    overview = tm.results.page.Table(OVERVIEW, [overview_row(one) for one in outcomes])
    origins = tm.results.page.Table(("from", "claims", *VERDICTS), counted_by_origin(spoken(outcomes)))
    sections = [tm.results.page.Section("In short", [in_short(outcomes)], [origins, overview])]
    if against := [
        (name, *row(name, claim)[:3]) for name, claim in spoken(outcomes) if claim.verdict == "contradicted"
    ]:
        table = tm.results.page.Table(("experiment", *HEADER[:3]), against)
        sections.append(tm.results.page.Section("What is contradicted", tables=[table]))
    for one in outcomes:
        text = [f"{one.paper}.".removeprefix("."), made(one).replace("`", "")]
        charts = [_Drawn(spec) for _, spec in drawn_specs(one)]
        tables = [tm.results.page.Table(HEADER, [row(one.name, claim) for claim in one.claims])]
        tables += [tm.results.page.Table(header, rows) for _, header, rows in one.tables]
        sections.append(
            tm.results.page.Section(f"{heading(one)}: {one.title}", [line for line in text if line], tables, charts)
        )
    return tm.results.page.write_page(
        Path(path), "What was published, and what was found", sections, f"tiltmeter {tm.__version__}"
    )


def spoken(outcomes: Sequence[Outcome]) -> list[tuple[str, Claim]]:
    """Each claim once, with its experiment: the best scale at which it was judged speaks for it."""
    found: dict[tuple[str, str, int], Claim] = {}
    for one in sorted((one for one in outcomes if one.state != "failed"), key=rank):
        found |= {(one.name, *key): claim for key, claim in by_sentence(one).items()}
    order = list(dict.fromkeys(one.name for one in outcomes))
    return [(key[0], found[key]) for key in sorted(found, key=lambda key: order.index(key[0]))]


def rank(outcome: Outcome) -> tuple[bool, bool, int]:
    """The best scale last: the published setting before a quick one, then more seeds."""
    return outcome.state == "run", outcome.scale == "full", outcome.seeds


def by_sentence(outcome: Outcome) -> dict[tuple[str, int], Claim]:
    """Claims by sentence and, where several share one, by their number."""
    found: dict[tuple[str, int], Claim] = {}
    for claim in outcome.claims:
        same = sum(sentence == claim.sentence for sentence, _ in found)
        found[claim.sentence, same] = claim
    return found


def in_short(outcomes: Sequence[Outcome]) -> str:
    """Return, in a sentence or two, how many published claims are reproduced, and all verdicts.

    >>> in_short([])
    '0 claims of 0 experiments. Reproduced: 0 of 0 published claims.'
    """
    claims = spoken(outcomes)
    published = [claim for name, claim in claims if origin_of(name, claim.sentence) == PUBLISHED]
    names = {one.name for one in outcomes}
    text = f"{_number(len(claims), 'claim')} of {_number(len(names), 'experiment')}."
    clear = sum(claim.verdict == "clear" for claim in published)
    text += f" Reproduced: {clear} of {_number(len(published), 'published claim')}."
    counts = [(sum(claim.verdict == verdict for _, claim in claims), verdict) for verdict in VERDICTS]
    if claims:
        text += f" All claims: {', '.join(f'{count} {verdict}' for count, verdict in counts if count)}."
    if failed := [one.name for one in outcomes if one.state == "failed"]:
        text += f" Failed: {', '.join(failed)}."
    return text


def counted_by_origin(claims: Sequence[tuple[str, Claim]]) -> list[tuple[str, ...]]:
    """Rows of a table: an origin, its claims, and how many of them have each verdict."""
    rows = []
    for origin in ORIGINS:
        verdicts = [claim.verdict for name, claim in claims if origin_of(name, claim.sentence) == origin]
        rows.append((origin, str(len(verdicts)), *(str(verdicts.count(verdict)) for verdict in VERDICTS)))
    return rows


def _number(count: int, one: str) -> str:
    return f"{count} {one if count == 1 else f'{one}s'}"


def overview_row(outcome: Outcome) -> tuple[str, ...]:
    """An outcome as cells of the overview."""
    took = f"{outcome.seconds:.0f} s" if outcome.state == "run" else outcome.state
    scale = f"{outcome.scale}, in part" if outcome.partial else outcome.scale
    counts = [sum(claim.verdict == verdict for claim in outcome.claims) or "" for verdict in VERDICTS]
    return outcome.name, scale, str(outcome.seeds or ""), took, outcome.date, *map(str, counts)


def row(experiment: str, claim: Claim) -> tuple[str, str, str, str, str]:
    """A claim as cells of the table."""
    origin = origin_of(experiment, claim.sentence)
    if claim.verdict == "not run":
        return claim.sentence, origin, "", "", f"not run: {claim.reason}"
    what = f"{claim.what}{'?' if claim.rule == 'so' else ':'} {claim.measured}"
    over = f"; {claim.seeds} seeds" if claim.seeds > 1 else ""
    note = f". {claim.where}" if claim.where else ""
    return claim.sentence, origin, what + over, claim.asked, claim.decision + note


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
