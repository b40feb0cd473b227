"""standing: sentences against cases made by hand, scopes, fall-backs, and what is not judged."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Origin, Trajectory, crossings, leader, load, phases, save, stack, standing
from tiltmeter.analysis.difference import ALL, Difference
from tiltmeter.analysis.kept_points import kept_points

TIMES = np.array([0, 1, 3, 10, 30])


def run(losses, groups, wrong=None, seeds=(), weighted=False, diverged=None, points=True):
    """A run with these losses (looks, points) of points in these groups."""
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
    origin = Origin("training", {"look": {"weighted": weighted}}, seeds=tuple(seeds))
    ended = None if diverged is None else xr.DataArray(diverged)
    return Trajectory(curves, "step", origin, ended, points=kept if points else None)


def losses(gap, seed=0, count=400, sizes=None):
    """Losses of spread 1 in which a is worse off by `gap` at each look; the same luck of points at every look."""
    rng = np.random.default_rng(seed)
    groups = np.where(np.arange(count) % 2 == 0, "a", "b")
    shared = rng.normal(size=count)
    for name in "ab":
        shared[groups == name] -= shared[groups == name].mean()
    return shared + np.outer(gap, groups == "a"), groups


class TestSentences:
    def test_first_one_then_the_other_with_where_the_lead_changes(self):
        found = standing(run(*losses([-1, -1, 0, 1, 1])))
        assert str(found) == (
            "In this run (all 5 looks, one curve together, 5 %): a has the lower loss from step 0 to 1; b has the lower "
            f"loss from step 10 to 30; the lead changes between step 1 and 10; elsewhere, no difference is shown and it "
            f"is at most {found.differences[0].stretches[1].bound:.2g}."
        )

    def test_nothing_shown_says_what_is_ruled_out(self):
        found = standing(run(*losses([0] * 5)))
        (one,) = found.differences
        assert "no difference in loss between a and b is shown at any look; any gap is at most" in str(found)
        assert 0.15 < one.bound < 0.4  # two to four standard errors of 0.1
        assert phases(run(*losses([0] * 5))) == ()

    def test_throughout_only_if_shown_at_every_look(self):
        assert "a has the lower loss throughout." in str(standing(run(*losses([-1] * 5))))
        assert "throughout" not in str(standing(run(*losses([0, -1, -1, -1, -1]))))

    def test_the_level_stands_in_the_sentence(self):
        assert "together, 1 %" in str(standing(run(*losses([1] * 5)), level=0.01))

    def test_many_short_stretches_are_counted(self):
        gap = np.array([1.0, 0, 1, 0, 1, 0, 1, 0.0])
        one = Difference("loss", "lower", ("a", "b"), "step", np.arange(8.0), gap, gap - 0.5, gap + 0.5)
        assert "b has the lower loss at 4 looks between step 0 and 6" in str(one)


class TestScopes:
    def seeds(self, count, gap=0.0):
        values, groups = losses([gap] * 5)
        rng = np.random.default_rng(1)
        return stack([run(values + 0.05 * rng.normal(size=(5, 1)), groups, seeds=(s,)) for s in range(count)])

    def test_one_few_and_many_seeds(self):
        assert [standing(self.seeds(n)).scope for n in (1, 2, 4, 5)] == ["run", "runs", "runs", "recipe"]
        assert str(standing(self.seeds(3))).startswith("In these runs")
        assert str(standing(self.seeds(5, gap=1.0))).startswith("For this recipe (all 5 looks")

    def test_curves_of_one_seed_are_judged_by_its_points(self):
        many = self.seeds(6)
        one = many.replace({name: curve.sel(seed=[2]) for name, curve in many.items()})
        assert standing(one).scope == "run"

    def test_a_seed_that_diverged_is_left_out(self):
        values, groups = losses([1.0] * 5)
        bad = values.copy()
        bad[3:] = np.nan
        many = stack(
            [run(values, groups, seeds=(s,)) for s in range(5)] + [run(bad, groups, seeds=(5,), diverged=10.0)]
        )
        assert kept_points(many).seeds == 5
        assert standing(many, "loss").differences[0].throughout


class TestFallBacks:
    def test_without_points_bonferroni_over_all_looks_which_is_said(self):
        found = standing(run(*losses([1] * 5), points=False))
        assert found.basis == "standard errors"
        assert str(found).endswith("which is wider.")
        with_points = standing(run(*losses([1] * 5)))
        width = [one.upper - one.lower for one in (found.differences[0], with_points.differences[0])]
        assert (width[0] >= 0.95 * width[1]).all()

    def test_loaded_from_disk_the_answer_is_the_same(self, tmp_path):
        one = run(*losses([-1, 0, 0, 1, 1]))
        save(one, tmp_path / "run")
        assert str(standing(load(tmp_path / "run"))) == str(standing(one))

    def test_weighted_points_are_not_judged(self):
        found = standing(run(*losses([1] * 5), weighted=True))
        assert found.differences == ()
        assert str(found) == "loss: it is not judged, since its points are weighted."
        assert crossings(run(*losses([-1, -1, 1, 1, 1]), weighted=True)) == ()

    def test_a_diverged_run_names_no_leader(self):
        values, groups = losses([1] * 5)
        values[3:] = np.nan
        one = run(values, groups, diverged=10.0)
        assert str(standing(one)) == "The run diverged at step 10, so no leader is named."
        assert set(leader(one).values) == {""}
        assert str(phases(one)) == "The run diverged at step 10, so no leader is named."

    def test_a_curve_without_errors_is_not_judged(self):
        one = run(*losses([1] * 5), points=False)
        auc = one["loss"].assign_attrs(better="higher")
        assert "auc: it is not judged, since no errors of it are known." in str(
            standing(one.replace({"auc": auc}), "auc")
        )

    def test_small_groups_are_named(self):
        values, groups = losses([1] * 5, count=60)
        assert "Few points: a has 30, b has 30 in at least one curve." in str(standing(run(values, groups)))
        values, groups = losses([1] * 5, count=30)
        assert "loss of a: it is not judged, with fewer than 20 points." in str(standing(run(values, groups)))


class TestManyGroups:
    def many(self):
        rng = np.random.default_rng(0)
        groups = np.array([f"g{i % 7}" for i in range(2100)])
        return run(rng.normal(size=(5, 2100)) + 1.0 * (groups == "g3") - 1.0 * (groups == "g5"), groups)

    def test_each_is_compared_with_all_and_the_worst_is_found(self):
        found = standing(self.many())
        assert {one.pair[1] for one in found.differences} == {ALL}
        assert "g3 lies above the mean loss throughout." in str(found)
        assert "g5 lies below the mean loss throughout." in str(found)
        worst = found.could_be_worst("loss")
        assert "g3" in worst
        assert "g5" not in worst
        assert f"Could be worst in loss at the end: {', '.join(worst)}." in str(found)

    def test_every_pair_may_still_be_asked_for(self):
        assert len(standing(self.many(), every_pair=True).differences) == 21
        assert set(leader(self.many()).values) == {"g5"}


def test_equivalence_is_a_finding():
    values, groups = losses([0.8, 0.4, 0, 0, 0], count=4000)
    (one,) = standing(run(values, groups)).differences
    assert one.within(0.2) == (3.0, 30.0)
    assert one.within(0.01) is None
    with pytest.raises(ValueError, match="distance = 0"):
        one.within(0)


def test_phases_without_a_leader_lie_between_those_with_one():
    found = phases(run(*losses([-1, -1, 0, 1, 1])))
    assert [(p.start, p.stop, p.leader) for p in found] == [(0, 1, "a"), (1, 10, ""), (10, 30, "b")]
    assert found[1].bound < 0.5


def test_errors_are_judged_as_rates():
    values, groups = losses([0] * 5)
    wrong = np.random.default_rng(0).random((5, 400)) < np.where(groups == "a", 0.5, 0.2)
    found = standing(run(values, groups, wrong=wrong))
    assert found["error", ("a", "b")].throughout
    assert "2 curves together" in str(found)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda one: standing(one, "lss"), KeyError, "No curve 'lss'"),
        (
            lambda one: standing(one, level=0),
            ValueError,
            "`level` should lie strictly between 0 and 1. Found level = 0.",
        ),
        (lambda one: standing(one)["loss", ("a", "x")], KeyError, "No difference in loss between a and x"),
        (lambda one: standing(one.replace({"tpr": one["loss"].isel(time=[])}), "tpr"), ValueError, "has no looks"),
    ],
)
def test_bad_input(call, kind, words):
    with pytest.raises(kind) as raised:
        call(run(*losses([1] * 5)))
    assert words in str(raised.value)
