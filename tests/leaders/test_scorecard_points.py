"""A scorecard knows that seeds share the points they looked at: errors by a second route, and false alarms counted."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm

TIMES, GROUPS = [0, 10, 100], ["a", "b"]


def run(values, codes):
    """A run from losses (seed, evaluation, point)."""
    seeds = range(len(values))
    group = np.array(GROUPS, dtype=object)[codes]
    means = np.stack([values[:, :, codes == code].mean(2) for code in (0, 1)], 2)
    coords = {"time": TIMES, "group": GROUPS, "seed": seeds}
    curve = xr.DataArray(means.transpose(1, 2, 0), dims=("time", "group", "seed"), coords=coords)
    points = xr.DataArray(
        values.astype(np.float32).transpose(1, 2, 0),
        dims=("time", "point", "seed"),
        coords={"time": TIMES, "group": ("point", group), "seed": seeds},
    )
    evaluation = {"points": len(codes), "sizes": [["a", int((codes == 0).sum())], ["b", int((codes == 1).sum())]]}
    return tm.Trajectory(
        {"loss": curve}, "step", tm.record.Origin("training", {"held_out": evaluation}), points={"loss": points}
    )


def losses(rng, seeds=5, count=120, shift=0.0):
    """Losses of a plain run and of another whose points gain or lose by luck, the same in all seeds."""
    codes = np.repeat([0, 1], [count // 3, count - count // 3])
    fall = np.array([2.0, 1.0, 0.5])[None, :, None]
    plain = fall + rng.normal(size=count) * 0.3 + 0.02 * rng.normal(size=(seeds, 3, count))
    luck = 0.2 * rng.normal(size=count)
    return plain, plain + luck + shift + 0.02 * rng.normal(size=plain.shape), codes


def test_errors_by_drawing_the_points_anew():
    plain, other, codes = losses(np.random.default_rng(0), seeds=1, shift=0.3)
    card = tm.scorecard({"plain": run(plain, codes), "other": run(other, codes)})["other"]
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(400):
        chosen = np.concatenate([rng.choice(np.flatnonzero(codes == code), (codes == code).sum()) for code in (0, 1)])
        pair = [{"loss": one[:, :, chosen]} for one in (plain, other)]
        means = [np.stack([p["loss"][0][:, codes == code].mean(1) for code in (0, 1)], 1) for p in pair]
        length = np.array(TIMES, dtype=float)
        areas = [np.trapezoid(np.ptp(mean, axis=1), length) / 100.0 for mean in means]
        drawn.append([means[1][-1, 0] - means[0][-1, 0], areas[1] - areas[0]])
    scatter = np.std(drawn, axis=0, ddof=1)
    paid = {one.group: one.change for one in card.paid}
    assert paid["a"].error == pytest.approx(scatter[0], rel=0.2)
    assert card.gap_area_change.error == pytest.approx(scatter[1], rel=0.35)  # the larger group may change by draw


def test_a_worst_group_is_named_only_if_it_is_shown():
    rng = np.random.default_rng(5)
    plain, other, codes = losses(rng)
    other = other + 0.5 * (codes == 0)  # the first group of the other run is truly worse off
    card = tm.scorecard({"plain": run(plain, codes), "other": run(other, codes)})
    assert (card["plain"].worst_group, card["plain"].could_be_worst) == ("", ("a", "b"))
    assert (card["other"].worst_group, card["other"].could_be_worst) == ("a", ("a",))
    assert "plain: could be worst: a, b (loss " in str(card)
    assert "other: worst group a (loss " in str(card)


def test_the_same_losses_pay_nothing_and_say_that_points_are_known():
    plain, _, codes = losses(np.random.default_rng(2))
    card = tm.scorecard({"plain": run(plain, codes), "again": run(plain, codes)})
    assert card["again"].paid == ()
    assert card["again"].worst_change.value == 0.0
    assert "errors include those of the points looked at, paired" in str(card)


@pytest.mark.slow
def test_luck_of_the_points_does_not_pay():
    """Truth: nobody pays. Two groups at two standard errors: about 7 % of 150; seeds alone name somebody in most."""
    named = {"points": 0, "seeds": 0}
    for draw in range(150):
        plain, other, codes = losses(np.random.default_rng([3, draw]))
        runs = [run(one, codes) for one in (plain, other)]
        bare = [tm.Trajectory(dict(one), "step", one.origin) for one in runs]
        for name, pair in (("points", runs), ("seeds", bare)):
            named[name] += bool(tm.scorecard(dict(zip(("plain", "other"), pair, strict=True)))["other"].paid)
    assert named["points"] <= 20
    assert named["seeds"] >= 75  # the negative control


def test_a_price_that_all_points_pay_is_shown():
    plain, other, codes = losses(np.random.default_rng(4), shift=0.3)
    card = tm.scorecard({"plain": run(plain, codes), "other": run(other, codes)})
    assert {one.group for one in card["other"].paid} == {"a", "b"}


def test_runs_without_points_say_so():
    plain, other, codes = losses(np.random.default_rng(5))
    bare = {name: run(one, codes) for name, one in (("plain", plain), ("other", other))}
    bare = {name: tm.Trajectory(dict(one), "step", one.origin) for name, one in bare.items()}
    assert "errors of the points looked at are not known" in str(tm.scorecard(bare))
