"""Calibrated risks explain the gap in error rates of groups that are treated alike; a shift of one group's risks does
not."""

import numpy as np
import pytest
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter_lab.measures.infra_marginality import InfraMarginality

POINTS = 40_000


def scored(shift=0.0):
    """Two groups with Beta(2, 4) and Beta(4, 2) risks, labels drawn from them; scores of the second are shifted."""
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.beta(2, 4, POINTS), rng.beta(4, 2, POINTS)])
    group = np.repeat(["low", "high"], POINTS)
    y = (rng.random(2 * POINTS) < p).astype(int)
    return tm.GroupedData((np.log(p / (1 - p)) + shift * (group == "high"))[:, None], y, group), p


def test_calibrated_risks_leave_no_gap_unexplained():
    data, p = scored()
    readings = lab.measure(InfraMarginality(), nn.Identity(), data)
    gap = readings["implied_fpr"].sel(group="high") - readings["implied_fpr"].sel(group="low")
    assert float(gap) > 0.3  # the one threshold gives very different false positive rates
    for name in ("tpr", "fpr", "ppv"):
        # A rate over at least POINTS/5 points has a standard error below 0.006.
        assert readings[f"unexplained_{name}"].values == pytest.approx([0.0, 0.0], abs=0.02)
    assert readings["marginal_outcome"].values == pytest.approx([0.5, 0.5], abs=0.02)
    own = p[:POINTS]
    assert float(readings["implied_tpr"].sel(group="low")) == pytest.approx(own[own > 0.5].sum() / own.sum(), abs=1e-5)


def test_a_group_whose_risks_are_raised_shows_it_at_the_margin():
    readings = lab.measure(InfraMarginality(), nn.Identity(), scored(shift=1.0)[0])
    assert float(readings["unexplained_ppv"].sel(group="high")) < -0.05
    assert float(readings["marginal_outcome"].sel(group="high")) < 0.35  # 1 / (1 + e) = 0.27 at the threshold itself
    assert float(readings["marginal_outcome"].sel(group="low")) == pytest.approx(0.5, abs=0.02)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="`threshold` should lie between 0 and 1"):
        InfraMarginality(threshold=1.0)
    with pytest.raises(ValueError, match="`width` should be positive"):
        InfraMarginality(width=0.0)
    data = tm.GroupedData(np.zeros((60, 1)), [0, 1] * 30, [0, 1] * 30)
    with pytest.raises(ValueError, match="needs probabilities"):
        lab.measure(InfraMarginality(), nn.Linear(1, 1), data, tm.losses.Hinge(), decide=lambda score: score > 0)
