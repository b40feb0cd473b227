"""Tables of the documentation that were typed by hand hold the numbers that are kept."""

import re
from pathlib import Path

import pytest

from tiltmeter_lab.judged_forecasts import KEPT, kept_in, summary
from tiltmeter_lab.verdict_page import read_outcomes, spoken

ROOT = Path(__file__).parents[2]


def rows(page, first):
    """Cells of the table whose header starts with this text, without the header."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    table = re.search(rf"^\| {re.escape(first)}.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def test_judged_forecasts():
    kept = kept_in(ROOT / KEPT)
    for column, part in enumerate(("tasks", "again", "fresh", "tight"), start=1):
        said = "\n".join(summary(kept[part], "default"))
        right, wrong, missed = map(int, re.search(r"all: .* right (\d+), wrong (\d+), not stated (\d+)", said).groups())
        wanted = [
            f"{right} of {right + wrong + missed}",
            str(wrong),
            str(missed),
            re.search(r"all: .* inside (\d+ of \d+)", said)[1],
            re.search(r"factor 1.5 in (\d+ of \d+)", said)[1],
            re.search(r"within 20 % in (\d+ of \d+)", said)[1],
        ]
        assert [row[column] for row in rows("forecast.md", "at the default budget")] == wanted


def test_interventions_on_photographs():
    """The change of the worst race, against plain training, is that of the claims."""
    claims = {claim.sentence.split()[0]: claim for name, claim in spoken(read_outcomes()) if name == "utkface-tools"}
    plain, *others = [float(row[2].split(",")[0]) for row in rows("lab/experiments.md", "intervention")]
    for change, word in zip(others, ("Balancing", "GroupDRO", "MedianGradient,"), strict=True):
        assert change - plain == pytest.approx(claims[word].statistic, abs=0.0011)  # both were rounded
    assert claims["The"].statistic == 4 / 5  # "in four splits of five"


def test_random_groups():
    """Both rules, in every curve alone and in any of five, in per cent."""
    claims = {claim.sentence: claim for name, claim in spoken(read_outcomes()) if name == "false-alarms"}
    alone = claims["Random groups get a leader in one curve as rarely as stated"]
    together = claims["Random groups get a leader in any of five curves together as rarely as stated"]
    bands, other = ([float(cell.split()[0]) for cell in row[1:]] for row in rows("leaders.md", "a leader is named"))
    kept = re.findall(r"(\w+) ([\d.]+) ± [\d.]+ %, ([\d.]+) ± ", alone.where)
    assert [name for name, *_ in kept] == ["loss", "error", "positive_rate", "tpr", "fpr"]
    assert bands == [*(float(share) for _, share, _ in kept), pytest.approx(100 * together.statistic, abs=0.06)]
    last = float(re.search(r"by look: ([\d.]+)", together.where)[1])
    assert other == pytest.approx([*(float(share) for *_, share in kept), last], abs=0.5)


def test_fresh_draws_of_random_groups():
    drawn = kept_in(ROOT / KEPT)["chance again"]
    counts = [sum(row[name] for row in drawn) for name in ("leader", "intervention", "for all alike", "cause")]
    assert len(drawn) == 200
    assert [int(row[1]) for row in rows("forecast.md", "random groups, 200 fresh draws")] == counts
