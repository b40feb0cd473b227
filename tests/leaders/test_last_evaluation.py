"""What a trained model decides about groups, by hand and by a second route: counts, limits, splits, ratios."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Trajectory
from tiltmeter.fairness.calibration import calibration
from tiltmeter.fairness.estimate import wilson
from tiltmeter.fairness.impact_ratio import impact_ratio
from tiltmeter.fairness.last_evaluation import LastEvaluation, last_evaluation
from tiltmeter.fairness.why import base_rate_split
from tiltmeter.record import Origin


def evaluate(cells, loss=None, seeds=1):
    """Groups with so many (true negatives, false positives, false negatives, true positives)."""
    codes, positive, decided = [], [], []
    for code, (tn, fp, fn, tp) in enumerate(cells):
        codes += [code] * (tn + fp + fn + tp)
        positive += [False] * (tn + fp) + [True] * (fn + tp)
        decided += [False] * tn + [True] * fp + [False] * fn + [True] * tp
    codes, positive, decided = np.array(codes), np.array(positive), np.array(decided)
    loss = np.where(decided == positive, 0.1, 2.0) if loss is None else loss
    groups = tuple("abcdefghijkl"[: len(cells)])
    return LastEvaluation(groups, codes, positive, np.tile(decided, (seeds, 1)), np.tile(loss, (seeds, 1)), 10.0)


WOMEN, MEN = (4063, 38, 117, 33), (3143, 70, 305, 231)  # census income: 8,000 people held out


def test_rates_of_the_census_by_hand():
    rates = evaluate([WOMEN, MEN]).rates()
    assert rates.base_rate == pytest.approx([150 / 4251, 536 / 3749])
    assert rates.tpr == pytest.approx([33 / 150, 231 / 536])
    assert rates.fpr == pytest.approx([38 / 4101, 70 / 3213])
    assert rates.positive_rate == pytest.approx([71 / 4251, 301 / 3749])
    assert rates.ppv == pytest.approx([33 / 71, 231 / 301])
    assert rates.error == pytest.approx([155 / 4251, 375 / 3749])
    assert rates.constant_error == pytest.approx([150 / 4251, 536 / 3749])
    assert rates.errors_removed == pytest.approx([1 - 155 / 150, 1 - 375 / 536])
    assert rates.loss == pytest.approx([(0.1 * 4096 + 2 * 155) / 4251, (0.1 * 3374 + 2 * 375) / 3749])


def test_limits_agree_with_closed_forms():
    """Redrawn points against Wilson's limits, Newcombe's for a difference and those of the logarithm of a ratio."""
    found = evaluate([WOMEN, MEN])
    drawn = found.redrawn
    low, high = np.quantile(drawn.tpr[:, 1], [0.025, 0.975])
    exact = wilson(231 / 536, 536)
    assert (low, high) == pytest.approx((exact.low, exact.high), abs=0.004)
    ratio = impact_ratio(found)
    away = 1.96 * np.sqrt(1 / 71 - 1 / 4251 + 1 / 301 - 1 / 3749)
    middle = np.log(ratio.ratio.value)
    assert np.log([ratio.ratio.low, ratio.ratio.high]) == pytest.approx([middle - away, middle + away], abs=0.03)
    assert (ratio.lowest, ratio.highest) == ("a", "b")
    assert ratio.in_data == pytest.approx(150 / 4251 / (536 / 3749))


def test_the_split_is_exact_and_has_the_numbers_of_the_census():
    """The reference page: 7.1 - 0.7 points, the second of which may be 0."""
    split = base_rate_split(evaluate([WOMEN, MEN]), "error", ("b", "a"))
    assert split.gap.value == pytest.approx(375 / 3749 - 155 / 4251)
    assert split.base_rates.value + split.within_labels.value == pytest.approx(split.gap.value)
    assert split.base_rates.value == pytest.approx(0.071, abs=5e-4)
    assert split.within_labels.value == pytest.approx(-0.0074, abs=5e-4)
    assert split.base_rates.shown
    assert not split.within_labels.shown


def test_equal_decisions_within_labels_leave_everything_to_base_rates():
    split = base_rate_split(evaluate([(90, 10, 50, 50), (900, 100, 50, 50)]), "error", ("a", "b"))
    assert split.within_labels.value == pytest.approx(0.0)
    same = base_rate_split(evaluate([(90, 10, 50, 50), (80, 20, 40, 60)]), "loss", ("a", "b"))
    assert same.base_rates.value == pytest.approx(0.0)


def test_random_groups_show_no_part():
    """A control: where groups are dealt at random, limits leave out zero about as often as they say."""
    rng = np.random.default_rng(0)
    shown = 0
    for _ in range(40):
        whole = evaluate([(300, 30, 40, 60)])
        dealt = LastEvaluation(("a", "b"), rng.integers(0, 2, 430), whole.positive, whole.decided, whole.loss, 10.0)
        split = base_rate_split(dealt, "error", ("a", "b"))
        shown += split.within_labels.shown
    assert shown <= 6  # 5 % of 40 is 2; three standard errors above


def test_from_three_seeds_on_the_seeds_are_drawn_too():
    rng = np.random.default_rng(0)
    one = evaluate([WOMEN, MEN], seeds=5)
    shaken = one.decided ^ (rng.random(one.decided.shape) < np.linspace(0, 0.2, 5)[:, None])
    many = LastEvaluation(one.groups, one.codes, one.positive, shaken, one.loss, 10.0)
    few = LastEvaluation(one.groups, one.codes, one.positive, shaken[:2], one.loss[:2], 10.0)
    assert np.std(many.redrawn.fpr[:, 1]) > 3 * np.std(few.redrawn.fpr[:, 1])


def test_empty_cells_give_no_number():
    rates = evaluate([(10, 0, 0, 0), (5, 5, 5, 5)]).rates()
    assert np.isnan(rates.tpr[0])
    assert np.isnan(rates.ppv[0])
    assert np.isnan(rates.errors_removed[0])
    assert rates.error[0] == 0.0
    assert not impact_ratio(evaluate([(10, 0, 0, 0), (5, 5, 0, 0)])).ratio.known  # five positive decisions: too few


def test_a_group_below_two_per_cent_is_not_rated():
    found = impact_ratio(evaluate([(500, 0, 0, 500), (500, 100, 0, 400), (5, 0, 0, 0)]))
    assert found.unrated == ("c",)
    assert found.lowest == "a"


class TestCalibration:
    def run(self, chance, came, groups, **more):
        coords = {"time": [0, 10], "group": ("point", groups), "positive": ("point", came)}
        last = {**coords, "time": [10]}
        points = {
            "loss": xr.DataArray(np.zeros((2, len(came))), dims=("time", "point"), coords=coords),
            "decided_positive": xr.DataArray(np.tile(chance > 0.5, (2, 1)), dims=("time", "point"), coords=coords),
            "probability": xr.DataArray(chance[None], dims=("time", "point"), coords=last),
        }
        return Trajectory({}, "step", Origin("training"), points={**points, **more})

    def test_a_bin_by_hand(self):
        """Ten points at .2 of which three came true, ten at .8 of which nine did: off by .1 in both bins."""
        chance, came = np.repeat([0.2, 0.8], 10), np.arange(20) % 10 < np.repeat([3, 9], 10)
        (one,) = calibration(self.run(chance, came, np.repeat("a", 20)), bins=2).groups
        assert one.error == pytest.approx(0.1)
        assert one.offset == pytest.approx(-0.1)
        assert [part.share.value for part in one.bins] == pytest.approx([0.3, 0.9])
        assert not one.shown

    def test_chance_alone_is_what_calibrated_models_have(self):
        """A second route: fresh outcomes of calibrated probabilities have the mean and exceed the limit in 5 %."""
        rng = np.random.default_rng(0)
        chance, groups = rng.beta(1, 5, 400), np.repeat("a", 400)
        found = [calibration(self.run(chance, rng.random(400) < chance, groups)).groups[0] for _ in range(60)]
        errors = np.array([one.error for one in found])
        assert abs(errors.mean() - found[0].chance) < 4 * errors.std() / np.sqrt(60)
        assert np.mean([one.shown for one in found]) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)

    def test_small_groups_are_left_out_and_old_runs_have_none(self):
        run = self.run(np.full(60, 0.3), np.arange(60) % 3 == 0, np.array(["a"] * 50 + ["b"] * 10))
        assert calibration(run).left_out == ("b",)
        old = Trajectory({}, "step", run.origin, points={n: p for n, p in run.points.items() if n != "probability"})
        assert calibration(old) is None

    @pytest.mark.parametrize(
        ("more", "sentence"), [({"level": 0}, "`level` should lie"), ({"bins": 0}, "`bins` should")]
    )
    def test_sentences(self, more, sentence):
        with pytest.raises(ValueError, match=sentence):
            calibration(self.run(np.full(60, 0.3), np.arange(60) % 3 == 0, np.repeat("a", 60)), **more)


def test_runs_without_two_labels_have_no_last_look():
    assert last_evaluation(Trajectory({}, "step", Origin("training"))) is None
