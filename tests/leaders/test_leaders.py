"""leaders: sentences against cases made by hand, scopes, fall-backs, and what is not judged."""

import re

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter import Trajectory, load, save, stack
from tiltmeter.leaders.difference import ALL
from tiltmeter.leaders.points import kept_points
from tiltmeter.record import Origin

TIMES = np.array([0, 1, 3, 10, 30])


def run(losses, groups, wrong=None, seeds=(), weighted=False, diverged=None, points=True):
    """A run with these losses (evaluations, points) of points in these groups."""
    names = sorted(set(groups))
    groups = np.asarray(groups)
    coords = {"time": TIMES[: len(losses)], "group": names}
    mean = np.stack([losses[:, groups == name].mean(1) for name in names], 1)
    error = np.stack([losses[:, groups == n].std(1, ddof=1) / (groups == n).sum() ** 0.5 for n in names], 1)
    curves = {
        "loss": xr.DataArray(mean, dims=("time", "group"), coords=coords, attrs={"better": "lower"}),
        "loss_se": xr.DataArray(error, dims=("time", "group"), coords=coords),
    }
    kept = {"loss": xr.DataArray(losses.astype(np.float32), dims=("time", "point"),
                                 coords={"time": coords["time"], "group": ("point", groups)})}  # fmt: skip
    if wrong is not None:
        kept["wrong"] = kept["loss"].copy(data=wrong)
        share = np.stack([wrong[:, groups == name].mean(1) for name in names], 1)
        curves["error"] = xr.DataArray(share, dims=("time", "group"), coords=coords, attrs={"better": "lower"})
    origin = Origin("training", {"held_out": {"weighted": weighted}}, seeds=tuple(seeds))
    ended = None if diverged is None else xr.DataArray(diverged)
    return Trajectory(curves, "step", origin, ended, points=kept if points else None)


def losses(gap, seed=0, count=400, sizes=None):
    """Losses of spread 1 in which a is worse off by `gap` at each evaluation; the same luck of points at every
    evaluation."""
    rng = np.random.default_rng(seed)
    groups = np.where(np.arange(count) % 2 == 0, "a", "b")
    shared = rng.normal(size=count)
    for name in "ab":
        shared[groups == name] -= shared[groups == name].mean()
    return shared + np.outer(gap, groups == "a"), groups


class TestSentences:
    def test_first_one_then_the_other_with_where_the_lead_changes(self):
        found = tm.leaders(run(*losses([-1, -1, -1, -1, 1])))
        assert str(found) == (
            "Group a has the higher loss: 1 against 2.7e-10. 1 apart, 0.77 to 1.2. "
            "Clear at the last evaluation; since when is not. "
            "Until step 10 group a was better off; they changed places between steps 10 and 30.\n"
            "One run; 200 points of group a and 200 of group b judged. At most 5 of 100 such statements are wrong.\n"
            "The held-out loss did not clearly fall."
        )

    def test_an_earlier_lead_of_fewer_than_three_evaluations_is_not_told(self):
        assert tm.leaders(run(*losses([-1, -1, -1, 0, 1]))).headline.before == ""

    def test_nothing_shown_says_what_is_ruled_out(self):
        found = tm.leaders(run(*losses([0] * 5)))
        (one,) = found.differences
        assert found.headline.gap == "The gap is between -0.23 and 0.22: not clear."
        assert 0.15 < one.bound < 0.4  # two to four standard errors of 0.1
        assert tm.leaders(run(*losses([0] * 5)), "loss").phases == ()

    def test_since_when_it_is_clear(self):
        assert tm.leaders(run(*losses([-1] * 5))).headline.since == "Clear from step 1 of 30 on."
        assert tm.leaders(run(*losses([0, 0, -1, -1, -1]))).headline.since == "Clear from step 3 of 30 on."

    def test_the_level_stands_in_the_sentence(self):
        assert "At most 1 of 100 such statements are wrong." in str(tm.leaders(run(*losses([1] * 5)), level=0.01))

    def test_a_lead_that_is_lost_is_told_as_such(self):
        told = tm.leaders(run(*losses([0, 1, 1, 0, 0]))).headline
        assert told.gap.endswith(": not clear.")
        assert told.before == (
            "During training group a was worse off, from step 1 to 3; at the end no difference is clear."
        )
        assert told.leader == ""

    def test_the_untrained_network_never_leads(self):
        found = tm.leaders(run(*losses([-5, 0, 0, 0, 0])))
        assert found.phases == ()
        assert 0 not in found.differences[0].times

    def test_what_would_settle_it(self):
        values, groups = losses([0] * 5)
        wrong = np.zeros((5, 400), dtype=bool)
        for name, share in (("a", 34), ("b", 26)):
            wrong[:, np.flatnonzero(groups == name)[:share]] = True
        told = tm.leaders(run(values, groups, wrong=wrong)).headline
        assert told.claim == "Group a has an error of 17 %, group b of 13 %."
        assert re.fullmatch(r"About [\d,]+ more points of group [ab] would settle a gap of this size\.", told.settle)


class TestScopes:
    def seeds(self, count, gap=0.0):
        values, groups = losses([gap] * 5)
        rng = np.random.default_rng(1)
        return stack(
            [run(values + 0.05 * rng.normal(size=(5, 1)) * (groups == "a"), groups, seeds=(s,)) for s in range(count)]
        )

    def test_one_few_and_many_seeds(self):
        assert [tm.leaders(self.seeds(n)).scope for n in (1, 2, 3)] == ["run", "models", "trainings"]
        assert tm.leaders(self.seeds(2)).headline.licence.startswith("These 2 models; ")
        assert tm.leaders(self.seeds(5, gap=1.0)).headline.licence.startswith("5 trainings, which differ by 0")

    def test_these_models_are_not_wider_than_one_of_them(self):
        many = self.seeds(5, gap=0.3)
        width = [
            (gap := tm.leaders(one, scope=scope).chosen).upper[-1] - gap.lower[-1]
            for one, scope in (
                (many, "models"),
                (many.replace({name: curve.sel(seed=[2]) for name, curve in many.items()}), None),
                (many, "trainings"),
            )
        ]
        assert width[0] <= 1.02 * width[1]
        assert width[0] < width[2]
        with pytest.raises(ValueError, match="At least 3 trainings are needed"):
            tm.leaders(self.seeds(2), scope="trainings")

    def test_curves_of_one_seed_are_judged_by_its_points(self):
        many = self.seeds(6)
        one = many.replace({name: curve.sel(seed=[2]) for name, curve in many.items()})
        assert tm.leaders(one).scope == "run"

    def test_a_seed_that_diverged_is_left_out(self):
        values, groups = losses([1.0] * 5)
        bad = values.copy()
        bad[3:] = np.nan
        many = stack(
            [run(values, groups, seeds=(s,)) for s in range(5)] + [run(bad, groups, seeds=(5,), diverged=10.0)]
        )
        assert kept_points(many).seeds == 5
        assert tm.leaders(many, "loss").differences[0].sign.all()


class TestFallBacks:
    def test_without_points_bonferroni_over_all_looks_which_is_said(self):
        found = tm.leaders(run(*losses([1] * 5), points=False))
        assert found.basis == "standard errors"
        assert "so limits are wider" in found.headline.licence
        with_points = tm.leaders(run(*losses([1] * 5)))
        width = [one.upper - one.lower for one in (found.differences[0], with_points.differences[0])]
        assert (width[0] >= 0.95 * width[1]).all()

    def test_loaded_from_disk_the_answer_is_the_same(self, tmp_path):
        one = run(*losses([-1, 0, 0, 1, 1]))
        save(one, tmp_path / "run")
        assert str(tm.leaders(load(tmp_path / "run"))) == str(tm.leaders(one))

    def test_weighted_points_are_not_judged(self):
        found = tm.leaders(run(*losses([1] * 5), weighted=True))
        assert found.differences == ()
        assert str(found) == "Loss is not judged, since its points are weighted."
        assert tm.leaders(run(*losses([-1, -1, 1, 1, 1]), weighted=True), "loss").changes == ()

    def test_a_diverged_run_names_no_leader(self):
        values, groups = losses([1] * 5)
        values[3:] = np.nan
        one = run(values, groups, diverged=10.0)
        assert str(tm.leaders(one)) == "The run diverged at step 10, so nobody is named."
        assert str(tm.leaders(one, "loss")) == "The run diverged at step 10, so nobody is named."

    def test_a_curve_without_errors_is_not_judged(self):
        one = run(*losses([1] * 5), points=False)
        auc = one["loss"].assign_attrs(better="higher")
        told = str(tm.leaders(one.replace({"auc": auc}), "auc"))
        assert "Auc is not judged, since no errors of it are known." in told

    def test_small_groups_are_named(self):
        values, groups = losses([1] * 5, count=60)
        assert "Few held-out cases: a has 30, b has 30 in at least one measure." in str(tm.leaders(run(values, groups)))
        values, groups = losses([1] * 5, count=30)
        assert "Loss of a is not judged, with fewer than 20 such points." in str(tm.leaders(run(values, groups)))


class TestManyGroups:
    def many(self):
        rng = np.random.default_rng(0)
        groups = np.array([f"g{i % 7}" for i in range(2100)])
        return run(rng.normal(size=(5, 2100)) + 1.0 * (groups == "g3") - 1.0 * (groups == "g5"), groups)

    def test_each_is_compared_with_all_and_the_worst_is_found(self):
        found = tm.leaders(self.many())
        assert {one.pair[1] for one in found.differences} == {ALL}
        assert found.headline.claim == "Group g3 is worst off: loss 1.11 against -0.158."
        assert found.could_be_worst == ("g3",)

    def test_the_worst_of_close_groups_is_not_named(self):
        rng = np.random.default_rng(0)
        groups = np.array([f"g{i % 7}" for i in range(2100)])
        shift = 0.5 * (groups == "g3") + 0.45 * (groups == "g4")
        told = tm.leaders(run(rng.normal(size=(5, 2100)) + shift, groups))
        assert " is worse off than all others together: " in told.headline.claim
        assert set(told.could_be_worst) >= {"g3", "g4"}
        assert "Could be worst off: g" in told.headline.also


def test_equivalence_is_a_finding():
    values, groups = losses([0.8, 0.4, 0, 0, 0], count=4000)
    (one,) = tm.leaders(run(values, groups)).differences
    assert one.within(0.2) == (3.0, 30.0)
    assert one.within(0.01) is None
    with pytest.raises(ValueError, match="distance = 0"):
        one.within(0)


def test_phases_without_a_leader_lie_between_those_with_one():
    found = tm.leaders(run(*losses([-1, -1, 0, 1, 1])), "loss")
    assert [(p.start, p.stop, p.leader) for p in found.phases] == [(1, 1, "a"), (1, 10, ""), (10, 30, "b")]
    assert found.phases[1].bound < 0.5


def test_errors_are_judged_as_rates():
    values, groups = losses([0] * 5)
    wrong = np.random.default_rng(0).random((5, 400)) < np.where(groups == "a", 0.5, 0.2)
    found = tm.leaders(run(values, groups, wrong=wrong))
    assert found["error", ("a", "b")].sign.all()
    assert found.curve == "error"
    assert np.isnan(found["loss", ("a", "b")].lower[:-1]).all()  # only the declared rate is asked during training


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda one: tm.leaders(one)[0], KeyError, "Ask for a curve and two groups: leaders["),
        (lambda one: tm.leaders(one, "lss"), KeyError, "No curve 'lss'"),
        (
            lambda one: tm.leaders(one, level=0),
            ValueError,
            "`level` should lie strictly between 0 and 1. Found level = 0.",
        ),
        (lambda one: tm.leaders(one)["loss", ("a", "x")], KeyError, "No difference in loss between a and x"),
        (
            lambda one: tm.leaders(one.replace({"tpr": one["loss"].isel(time=[])}), "tpr"),
            ValueError,
            "has no evaluations",
        ),
    ],
)
def test_bad_input(call, kind, words):
    with pytest.raises(kind) as raised:
        call(run(*losses([1] * 5)))
    assert words in str(raised.value)


class TestQuestion:
    def decided(self, positive_rates):
        """A run of two groups with labels, whose decisions have these rates among positives and negatives."""
        count = 800
        groups = np.where(np.arange(count) % 2 == 0, "men", "women")
        positive = np.arange(count) % 4 < 2
        decided = np.zeros((3, count), dtype=bool)
        for (group, label), rate in positive_rates.items():
            members = np.flatnonzero((groups == group) & (positive == label))
            decided[1:, members[: int(rate * len(members))]] = True
        coords = {"time": [0, 10, 20], "group": ("point", groups), "positive": ("point", positive)}
        kept = {"decided_positive": xr.DataArray(decided, dims=("time", "point"), coords=coords)}
        names = ["men", "women"]
        rates = {
            name: np.stack([values[:, (groups == group) & where].mean(1) for group in names], 1)
            for name, values, where in (
                ("error", decided != positive, positive | ~positive),
                ("tpr", decided, positive),
                ("fpr", decided, ~positive),
                ("positive_rate", decided, positive | ~positive),
            )
        }
        curves = {
            name: xr.DataArray(values, dims=("time", "group"), coords={"time": [0, 10, 20], "group": names})
            for name, values in rates.items()
        }
        question = tm.Question("flagged", "reoffended", kind="burden").to_json()
        return Trajectory(curves, "step", Origin("training", {"held_out": {"question": question}}), points=kept)

    RATES = {("men", True): 0.9, ("women", True): 0.5, ("men", False): 0.3, ("women", False): 0.1}  # noqa: RUF012

    def test_the_question_of_the_data_is_asked_first(self):
        found = tm.leaders(self.decided(self.RATES))
        assert found.curve == "fpr"
        assert found.headline.claim == "Of the men who did not reoffend, 30 % are flagged; of the women, 10 %."
        assert found.headline.gap == "20 points apart, 11 to 29."
        assert found.headline.licence == (
            "One run; 200 men and 200 women judged. At most 5 of 100 such statements are wrong."
        )

    def test_another_question_or_curve(self):
        run_ = self.decided(self.RATES)
        assert tm.leaders(run_, question=tm.Question("approved", "repaid")).curve == "tpr"
        assert tm.leaders(run_, "error").curve == "error"

    def test_what_is_clear_is_told_where_the_asked_curve_is_not(self):
        found = tm.leaders(self.decided({**self.RATES, ("men", False): 0.1}))
        assert found.curve == "fpr"
        assert found.headline.claim == "Of the men who did not reoffend, 10 % are flagged; of the women, 10 %."
        assert found.headline.gap.endswith(": not clear.")
        assert found.headline.also == "The true positive rates differ: 50 % of women, 90 % of men."

    def test_the_table_and_json(self):
        found = tm.leaders(self.decided(self.RATES))
        frame = found.to_frame()
        assert list(frame.columns) == ["curve", "pair", "leader", "since", "gap", "low", "high"]
        row = frame[frame["curve"] == "fpr"].iloc[0]
        assert (row["leader"], row["since"]) == ("women", 10.0)
        assert row["low"] < row["gap"] < row["high"]
        assert found.to_json()["headline"]["claim"] == found.headline.claim


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"decision": "", "outcome": "x"}, "`decision` should be a word or two"),
        ({"decision": "a", "outcome": "b", "kind": "fun"}, '`kind` should be "burden" or "benefit"'),
    ],
)
def test_bad_questions(given, words):
    with pytest.raises(ValueError, match=words):
        tm.Question(**given)
