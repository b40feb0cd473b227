"""The experiment about equilibrium: every published finding gets a verdict, and the control shows nothing."""

import pytest

import tiltmeter as tm


@pytest.fixture(scope="module")
def verdicts():
    from tiltmeter_lab.named.equilibrium_bias import QUICK, claims, run

    return claims(run(QUICK))


def test_published_findings_have_a_verdict_each(verdicts):
    said = {claim.sentence: claim for claim in verdicts}
    assert len(said) == 9
    holding = [claim for claim in verdicts if claim.holds]
    found = " ".join(claim.sentence for claim in holding)
    for finding in ("labelling rules of the groups agree", "same labelling rule", "equally represented", "Reweighting"):
        assert finding in found, list(map(str, verdicts))
    assert "error and worst-group error" in found


def test_findings_that_do_not_hold_everywhere_say_where(verdicts):
    for claim in verdicts:
        assert claim.holds or claim.where, str(claim)
    joint = next(claim for claim in verdicts if claim.sentence.startswith("Joint training"))
    assert "It helps in most problems for overlaps of the rules from" in joint.where
    parity = next(claim for claim in verdicts if claim.sentence.endswith("statistical parity"))
    assert not parity.holds


def test_the_control_shows_no_bias():
    from tiltmeter_lab.named.equilibrium_bias import QUICK

    for overlap in QUICK.overlaps:
        fair = tm.equilibrium(tm.teacher_mixture(0.5, 0.0, (1.0, 1.0), overlap), tm.Logistic(), 2.0, QUICK.ridge)
        assert abs(fair.error_gap).max() < 1e-9
