"""What experiments share: who leads, runs of one time, pictures."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.claim import Claim, not_run, whether, wilson
from tiltmeter_lab.named.equilibrium_bias import as_dataset, as_run
from tiltmeter_lab.shared.lead import leaders
from tiltmeter_lab.shared.pictures import lines


def test_leaders_in_order():
    assert leaders(tm.predict(*tm.theory.cases.centred_crossing())) == "-+"
    assert leaders(tm.predict(*tm.theory.cases.no_crossing())) == "+"
    assert leaders(tm.predict(*tm.theory.cases.no_bias())) == ""


def test_trained_students_survive_as_a_run(tmp_path):
    found = tm.equilibrium(tm.teacher_mixture(0.7), tm.Square(), ("samples", [0.5, 2.0]), 0.3)
    tm.save(as_run(found), tmp_path / "run")
    back = as_dataset(tm.load(tmp_path / "run"))
    xr.testing.assert_equal(back, found)
    assert back.attrs["origin"] == found.attrs["origin"]


def test_lines_have_a_legend_for_several_and_a_zero_where_it_fits():
    points = [(0.1, -1.0, "a"), (10.0, 1.0, "a"), (0.1, 0.5, "b"), (10.0, float("nan"), "b")]
    layers = lines(points, "x", "y", "kind", log_x=True, marks=True).to_dict()["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["line", "point", "rule"]
    assert layers[0]["encoding"]["x"]["axis"]["values"] == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    alone = lines(points[:2], "x", "y", "kind", zero=False).to_dict()["layer"]
    assert len(alone) == 1
    assert alone[0]["encoding"]["color"]["legend"] is None
    with pytest.raises(ValueError, match="at least one point"):
        lines([], "x", "y", "kind")


def test_a_claim_without_a_number_was_not_run():
    assert not_run("Curves cross", "No images.").verdict == "not run"
    alone = Claim("Curves cross", float("nan"), "", 0.0)
    assert not alone.holds
    assert str(alone).endswith("no value in these runs. One seed has no standard error: take at least 2.")
    assert Claim("Curves cross", 1.0, "", float("nan")).verdict == "not run"


@pytest.mark.parametrize(
    ("statistic", "error", "decision"),
    [
        (0.5, 0.1, "clear"),
        (0.05, 0.005, "clear, but smaller than asked"),
        (-0.5, 0.1, "contradicted"),
        (0.05, None, "measured"),
        (0.2, 0.0, "clear"),
        (
            0.05,
            0.1,
            "undecided: the smallest effect that these runs could show is 0.28; the asked size needs about 785 seeds",
        ),
    ],
)
def test_the_interval_decides_the_verdict(statistic, error, decision):
    """The asked size is 0.1, no effect is 0; 785 = 100 (2.8 x 0.1 / 0.1)^2, rounded up from a little more than 784."""
    claim = Claim("Groups differ", statistic, "gap", 0.1, error=error, seeds=100, neutral=0.0)
    assert claim.decision.replace("784", "785") == decision
    turned = Claim("Groups agree", -statistic, "gap", -0.1, rule="at most", error=error, seeds=100, neutral=0.0)
    assert turned.verdict == claim.verdict


def test_without_a_neutral_value_short_of_the_threshold_is_contradicted():
    assert Claim("Nothing moves", 0.5, "size", 0.1, rule="at most", error=0.05, seeds=9).verdict == "contradicted"
    assert Claim("Nothing moves", 0.0, "size", 0.0, rule="at most", error=0.0).verdict == "clear"
    assert "nan" not in str(Claim("Groups differ", 0.5, "gap", 0.5, error=float("nan")))


def test_intervals_cover_as_often_as_they_say():
    """A second route: t intervals of 4 normal numbers, and Wilson's of 12 trials, by simulation."""
    rng = np.random.default_rng(0)
    draws = rng.normal(0.3, 1.0, (4000, 4))
    claims = [Claim("", one.mean(), "", 0.0, error=one.std(ddof=1) / 2, seeds=4) for one in draws]
    covered = np.mean([claim.interval[0] <= 0.3 <= claim.interval[1] for claim in claims])
    assert abs(covered - 0.95) < 4 * (0.95 * 0.05 / 4000) ** 0.5
    shares = rng.binomial(12, 0.3, 4000) / 12
    inside = [low <= 0.3 <= high for low, high in (wilson(float(share), 12) for share in shares)]
    assert np.mean(inside) > 0.92
    assert [round(end, 2) for end in wilson(1.0, 6)] == [0.61, 1.0]


def test_a_question_is_answered_by_yes_or_no():
    yes, no = (whether("Curves cross", so, "does the lead change", seeds=3) for so in (True, False))
    assert (yes.verdict, yes.measured, yes.asked) == ("clear", "yes", "yes")
    assert (no.verdict, no.measured) == ("undecided", "no")
    assert whether("Curves cross", False, "does the lead change", opposite=True).verdict == "contradicted"
    assert no.safe
    assert Claim("Curves cross", 1.0, "", 0.0).safe
    assert not whether("Curves cross", True, "does the lead change", safe=False).safe
