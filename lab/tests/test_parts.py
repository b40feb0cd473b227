"""What experiments share: who leads, runs of one time, pictures."""

import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.claim import Claim, not_run, whether
from tiltmeter_lab.named.equilibrium_bias import as_dataset, as_run
from tiltmeter_lab.shared.lead import leaders
from tiltmeter_lab.shared.pictures import lines


def test_leaders_in_order():
    assert leaders(tm.predict(*tm.problem.cases.centred_crossing())) == "-+"
    assert leaders(tm.predict(*tm.problem.cases.no_crossing())) == "+"
    assert leaders(tm.predict(*tm.problem.cases.no_bias())) == ""


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


def test_a_verdict_near_its_threshold_says_so():
    far, near = (Claim("Groups differ", 0.5, "gap", value, error=0.1, seeds=5) for value in (0.29, 0.31))
    assert (far.decision, near.decision) == ("holds", "holds, but within two standard errors of the threshold")
    assert str(near) == (
        "Holds, but within two standard errors of the threshold: Groups differ (gap 0.5 ± 0.1, at least 0.31 asked)."
    )
    assert not Claim("Groups differ", 0.5, "gap", 0.5, error=0.0).close
    assert "nan" not in str(Claim("Groups differ", 0.5, "gap", 0.5, error=float("nan")))


def test_a_question_is_answered_by_yes_or_no():
    yes, no = (whether("Curves cross", so, "does the lead change", seeds=3) for so in (True, False))
    assert (yes.verdict, yes.measured, yes.asked) == ("holds", "yes", "yes")
    assert (no.verdict, no.measured) == ("does not hold", "no")
    assert no.safe
    assert Claim("Curves cross", 1.0, "", 0.0).safe
    assert not whether("Curves cross", True, "does the lead change", safe=False).safe
