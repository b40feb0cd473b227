"""Who leads while a run trains: the same limits at an evaluation, however many evaluations came after it."""

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.explorer.run_judgement import live_differences, planned_evaluations, run_judgement, run_summaries
from tiltmeter.record import Recorder

PLAN = {"when": {"every": 1}, "steps": 19}


def run_of(gaps, settings=PLAN, errors=0.05):
    times = np.arange(len(gaps))
    values = np.stack([0.5 + np.asarray(gaps), np.full(len(gaps), 0.5)], 1)
    coords = {"time": times, "group": ["a", "b"]}
    curve = xr.DataArray(values, dims=("time", "group"), coords=coords)
    return tm.Trajectory(
        {"loss": curve, "loss_se": xr.full_like(curve, errors)}, "step", tm.record.Origin("training", settings=settings)
    )


def test_a_look_is_judged_once_and_for_all():
    gaps = np.random.default_rng(0).normal(size=20)
    whole = live_differences([run_of(gaps)], "loss")[0][0]
    for evaluations in (1, 7, 19):
        part = live_differences([run_of(gaps[:evaluations])], "loss")[0][0]
        np.testing.assert_array_equal(part.lower, whole.lower[:evaluations])
        np.testing.assert_array_equal(part.upper, whole.upper[:evaluations])


def test_nobody_is_named_more_often_than_is_said():
    """Independent evaluations are the worst case of Bonferroni: 5 % of runs without a gap name somebody at some
    look."""
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(2000):
        found = live_differences([run_of(rng.normal(size=20) * 0.05 * 2**0.5)], "loss")[0][0]
        wrong += bool(found.sign.any())
    assert 0.05 - 4 * 0.0049 < wrong / 2000 < 0.05 + 4 * 0.0049


def test_a_large_gap_is_named_and_its_change_too():
    pairs, planned = live_differences([run_of([1.0, 1.0, 0.0, -1.0])], "loss")
    assert planned == 20
    assert pairs[0].leader.tolist() == ["b", "b", "", "a"]
    assert [(one.before, one.after) for one in pairs[0].changes] == [("b", "a")]


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (run_of([1.0], settings={}), "how many steps are planned is not recorded"),
        (run_of([1.0], settings={"when": {"every": 1}, "steps": 10**12}), "how many steps are planned is not recorded"),
        (run_of([1.0], settings={"when": {"never": 1}, "steps": 5}), "how many steps are planned is not recorded"),
    ],
)
def test_without_a_plan_nobody_is_named(run, sentence):
    with pytest.raises(ValueError, match=sentence):
        live_differences([run], "loss")


def test_a_running_run_is_judged_by_its_plan_and_a_finished_one_by_its_bands(tmp_path):
    assert planned_evaluations(tm.record.Origin("training", settings=PLAN)) == 20
    recorder = Recorder(tmp_path / "live", clock="step", origin=tm.record.Origin("training", settings=PLAN))
    groups = {"dims": "group", "coords": {"group": ["a", "b"]}}
    for step in range(3):
        loss = {"loss": xr.DataArray([0.2, 0.9], **groups), "loss_se": xr.DataArray([0.01, 0.01], **groups)}
        recorder.append(step, loss)
    told = run_judgement(str(tmp_path), ["live"], "loss")
    assert told["sentence"] == (
        "Group b has the higher loss: 0.9 against 0.2. 0.7 apart, 0.66 to 0.74. Clear from step 0 of 2 on.\n"
        "While it trains, 3 of 20 planned evaluations; all tested together. At most 5 of 100 such statements are wrong."
    )
    assert (told["planned"], told["stopping"]) == (20, [])
    assert run_summaries(str(tmp_path), ["live"])["live"] == {"leader": "a", "crossing": None}
    recorder.close()
    over = run_judgement(str(tmp_path), ["live"], "loss")
    assert "planned" not in over
    width = lambda one: one["bands"][0]["upper"][0] - one["bands"][0]["lower"][0]  # noqa: E731
    assert width(told) > width(over)


def test_the_table_of_runs_says_who_leads_in_the_measure_of_the_headline(tmp_path):
    """The losses are alike, and group b is found half as often."""
    rng, curves = np.random.default_rng(0), {}
    positive = np.tile([True, False], 400)
    coords = {"time": [0, 10], "group": ("point", np.repeat(["a", "b"], 400)), "positive": ("point", positive)}
    decided = (rng.random(800) < np.repeat([0.9, 0.45], 400)) & positive
    points = {"loss": np.ones(800), "decided_positive": decided}
    kept = {
        name: xr.DataArray(np.stack([one, one]), dims=("time", "point"), coords=coords) for name, one in points.items()
    }
    of_group = {"time": [0, 10], "group": ["a", "b"]}
    shares = [decided[:400][positive[:400]].mean(), decided[400:][positive[400:]].mean()]
    for name, values in (("loss", [1.0, 1.0]), ("tpr", shares)):
        curves[name] = xr.DataArray([values, values], dims=("time", "group"), coords=of_group)
        curves[f"{name}_se"] = 0.01 + 0 * curves[name]
    run = tm.Trajectory(curves, "step", tm.record.Origin("training"), points=kept)
    tm.save(run, tmp_path / "one")
    assert tm.leaders(run).headline.leader == "a"
    assert run_summaries(str(tmp_path), ["one"])["one"]["leader"] == "a"
    assert run_summaries(str(tmp_path), ["one"], "loss")["one"]["leader"] == "not clear"
