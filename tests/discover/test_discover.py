"""discover: who is late and who is worse off, judged on points that had no part in finding it."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tiltmeter as tm
from discovered_runs import STEPS, made_run, margins, people
from tiltmeter.discover.curves import halves, learning_curves, regrouped

TABLE = people()
LATE = TABLE["job"] == "cook"
HARD = TABLE["age"] > 67
RUN = made_run(margins(2000, late=LATE, hard=HARD))


@pytest.fixture(scope="module")
def discovery():
    return tm.discover(RUN, TABLE)


def test_both_kinds_are_found_and_named(discovery):
    verdicts = {group.name: group.verdict for group in discovery.clear}
    assert verdicts["job = cook"] == "learned later"
    worse = [name for name, verdict in verdicts.items() if verdict == "worse at the end"]
    assert worse
    assert all("age >" in name for name in worse)


def test_the_sentence_says_the_claim_first(discovery):
    claim, licence = str(discovery).split("\n")
    assert claim.startswith("The group age > ")
    assert "is worse off at the end: its loss is" in claim
    assert "job = cook, " in claim
    assert "is learned later: its loss is clearly higher from step " in claim
    assert "(" not in claim
    assert licence.startswith(
        f"One run: {len(discovery.groups)} rules found on 1,000 points and judged on 1,000 others, 7 evaluations tested together, 5 % error rate."
    )


def test_the_judges_never_influence_the_rules(discovery):
    judges = discovery.judges
    course = margins(2000, late=LATE, hard=HARD)
    course[:, judges] = np.random.default_rng(5).normal(size=(len(STEPS), judges.sum()))
    other = tm.discover(made_run(course), TABLE)
    assert {(group.rule, group.score) for group in other.groups} == {
        (group.rule, group.score) for group in discovery.groups
    }
    assert str(other) != str(discovery)


def test_the_searched_points_never_influence_the_judgement(discovery):
    course = margins(2000, late=LATE, hard=HARD)
    course[:, ~discovery.judges] += 0.01 * course[:, ~discovery.judges]  # the same rules from other losses
    other = tm.discover(made_run(course), TABLE)
    mine = {group.rule: (group.loss, group.loss_of_others) for group in discovery.groups}
    assert all(mine[group.rule] == (group.loss, group.loss_of_others) for group in other.groups if group.rule in mine)


def test_group_equals_the_masks_also_after_json(discovery, tmp_path):
    file = tmp_path / "groups.json"
    file.write_text(json.dumps(discovery.to_json()))
    again = tm.results.Discovery.from_json(json.loads(file.read_text()))
    assert again == discovery
    assert str(again) == str(discovery)
    for table in (TABLE, pd.DataFrame(TABLE)):
        assert np.array_equal(discovery.group(table), discovery.group())
        assert np.array_equal(again.group(table), discovery.group())
    for group in discovery.groups:
        mask = group.rule.holds(discovery.columns)
        assert mask[discovery.judges].sum() == group.points
    with pytest.raises(ValueError, match="The run is not stored with a discovery"):
        again.run(0)


def test_as_a_table(discovery):
    frame = discovery.to_frame()
    assert frame["name"].tolist() == [group.name for group in discovery.groups]
    assert frame["points"].tolist() == [group.points for group in discovery.groups]


def test_same_seed_same_answer(discovery):
    assert tm.discover(RUN, TABLE) == discovery
    assert not np.array_equal(tm.discover(RUN, TABLE, seed=1).judges, discovery.judges)


def test_every_point_goes_to_the_smallest_clear_group(discovery):
    members = discovery.group()
    for group in discovery.clear:
        inside = group.rule.holds(discovery.columns)
        sizes = {other.name: other.points for other in discovery.clear}
        assert all(sizes[name] <= group.points for name in set(members[inside]))
    assert set(members) == set(discovery.parts)
    other_rows = people(50, seed=9)
    assert set(discovery.group(other_rows)) <= set(discovery.parts)


def test_data_takes_the_groups_on(discovery):
    train_table = people(300, seed=3)
    x = np.zeros((300, 2))
    train = tm.GroupedData(x, np.arange(300) % 2, ["all"] * 300)
    assert discovery.data(train, train_table).sizes == {
        name: int((discovery.group(train_table) == name).sum())
        for name in discovery.parts
        if name in discovery.group(train_table)
    }
    held_out = tm.GroupedData(np.zeros((2000, 2)), (np.arange(2000) % 2 == 0).astype(int), ["all"] * 2000)
    assert discovery.data(held_out).groups == discovery.parts
    with pytest.raises(ValueError, match="`table` should have one row for every point of `grouped`"):
        discovery.data(train)
    with pytest.raises(ValueError, match=r"`grouped` should be the held-out data of the run. Found other labels"):
        discovery.data(tm.GroupedData(np.zeros((2000, 2)), np.arange(2000) % 2, ["all"] * 2000))
    with pytest.raises(ValueError, match=r"`table` should have a row for each of 300 points. Found 200 rows"):
        discovery.data(train, people(200))


def test_run_is_for_leaders_and_reports(discovery):
    run = discovery.run("job = cook")
    judged = tm.leaders(run, "loss", level=discovery.level / len(discovery.groups))
    mine = discovery["job = cook"].difference
    assert np.array_equal(judged.differences[0].gap, mine.gap)
    assert np.array_equal(judged.differences[0].lower, mine.lower)
    assert run["loss"].coords["group"].values.tolist() == ["job = cook", "everyone else"]
    assert {"error", "positive_rate", "tpr", "fpr"} <= set(run)
    assert sum(size for _, size in run.origin.problem["held_out"]["sizes"]) == discovery.judged
    with pytest.raises(KeyError, match=r"No group 'nurse'. There are"):
        discovery.run("nurse")


def test_the_curves_of_a_regrouped_run_are_means_of_its_points(discovery):
    run = discovery.run(0)
    points = run.points["loss"]
    for group in run["loss"].coords["group"].values:
        chosen = points.isel(point=np.flatnonzero(points.coords["group"].values == group))
        assert np.allclose(run["loss"].sel(group=group), chosen.mean("point"), rtol=1e-5)


def test_two_labels_have_the_excess_of_their_probability():
    curves = learning_curves(RUN)
    loss = curves.loss[0].astype(float)
    p = np.exp(-loss)
    entropy = -p * np.log(p) - (1 - p) * np.log1p(-p)
    assert np.allclose(curves.excess[0], loss - entropy, atol=2e-5)


def test_a_calibrated_model_has_no_excess():
    """Labels drawn with the model's own probability: the excess is 0 in the mean, the loss is not."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 200_000)
    right = np.where(rng.random(200_000) < p, p, 1 - p)
    margin = np.log(right / (1 - right))
    curves = learning_curves(made_run(np.tile(margin, (len(STEPS), 1))))
    assert abs(float(curves.excess[0, -1].mean())) < 3 * float(curves.excess[0, -1].std()) / np.sqrt(200_000)
    assert curves.loss[0, -1].mean() > 0.3


def test_silence_where_nothing_differs():
    discovery = tm.discover(made_run(margins(1000, seed=4)), people(1000, seed=4))
    assert not discovery.clear
    assert discovery.claim == "No group that the table can name is clearly worse off or learned later."
    assert discovery.parts == ("everyone else",)
    with pytest.raises(ValueError, match="No group is clear, so there are none to divide the data into"):
        discovery.data(tm.GroupedData(np.zeros((1000, 1)), np.arange(1000) % 2, ["all"] * 1000))


def test_catching_up_is_more_than_not_being_clear_any_more():
    caught_up = tm.discover(made_run(margins(2000, late=LATE)), TABLE)["job = cook"]
    assert caught_up.caught_up
    assert caught_up.most_at_end < caught_up.difference.lower.max()
    noisy = margins(2000, late=LATE)
    noisy[-1] = np.random.default_rng(0).normal(scale=40.0, size=2000)  # at the end anything is possible
    discovery = tm.discover(made_run(noisy), TABLE)
    group = next(group for group in discovery.clear if group.name == "job = cook")
    assert group.verdict == "learned later"
    assert not group.caught_up
    assert "at the end it is not clearly higher" in discovery.claim


def test_an_easy_group_is_never_worse():
    easy = TABLE["town"] == "north"
    course = margins(2000) + np.where(easy, 2.0, 0.0)
    names = [group.name for group in tm.discover(made_run(course), TABLE).clear]
    assert not any("town = north" in name for name in names)


def test_several_seeds_are_judged_by_points_and_seeds():
    course = np.stack([margins(2000, late=LATE, seed=seed) for seed in range(5)])
    discovery = tm.discover(made_run(course, seeds=range(5)), TABLE)
    assert discovery.seeds == 5
    assert discovery.licence.startswith("5 seeds: ")
    assert discovery["job = cook"].verdict == "learned later"
    assert discovery.run("job = cook")["loss"].sizes["seed"] == 5


def test_a_seed_that_diverged_is_left_out():
    course = np.stack([margins(2000, late=LATE, seed=seed) for seed in range(3)])
    course[1, -2:] = np.nan
    run = made_run(course, seeds=[7, 8, 9])
    ended = xr.DataArray([np.nan, 300.0, np.nan], dims="seed", coords={"seed": [7, 8, 9]})
    run = tm.Trajectory(dict(run), "step", run.origin, ended, points=run.points)
    discovery = tm.discover(run, TABLE)
    assert discovery.seeds == 2
    assert discovery.licence.startswith("2 runs: ")
    assert discovery["job = cook"].clear
    assert discovery.run("job = cook")["loss"].coords["seed"].values.tolist() == [7, 9]


def test_other_losses_are_searched_as_they_are():
    discovery = tm.discover(made_run(margins(2000, late=LATE), loss="half squared error"), TABLE)
    assert "The entropy of predictions is not known" in discovery.licence
    assert discovery["job = cook"].clear


def test_the_card_escapes_names():
    table = {**TABLE, "job": np.where(LATE, "<script>alert(1)</script>", TABLE["job"])}
    html = tm.discover(RUN, table)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "clear: learned later, from step" in html


def test_columns_left_out_are_named_in_the_licence():
    discovery = tm.discover(RUN, {**TABLE, "id": np.arange(2000)})
    assert "Left out: id (numbers the rows, as an id)." in discovery.licence


def test_a_group_that_the_run_has_already_is_said_to_be_one():
    code = (TABLE["job"] == "cook").astype(int)
    labelled = regrouped(learning_curves(RUN), np.arange(2000), code, ("others", "cooks"))
    assert "job = cook is a group of this run already." in tm.discover(labelled, TABLE).licence
    assert "already" not in tm.discover(RUN, TABLE).licence


def test_a_fine_level_judges_fewer_rules():
    discovery = tm.discover(RUN, TABLE, level=0.004)
    assert len(discovery.groups) == 2
    assert "too many to be judged at this level" in discovery.licence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"run": "runs/mine"}, "`run` should be a Trajectory"),
        ({"table": None}, "`table` should hold a row for every held-out point, or `features` an array. Found neither"),
        (
            {"table": people(1999)},
            "`table` should have one row for every held-out point of the run, 2,000. Found 1,999",
        ),
        ({"level": 0}, "`level` should lie strictly between 0 and 1. Found level = 0"),
        ({"judge": 0.95}, "`judge` should be a share from 0.2 to 0.8 of the points. Found judge = 0.95"),
        ({"most": 0}, "`most` should be a positive number of rules. Found most = 0"),
        ({"depth": 4}, "`depth` should be 1, 2 or 3 conditions. Found depth = 4"),
        ({"least": 0.7}, "`least` should be a share above 0 and below 0.5. Found least = 0.7"),
        ({"floor": -1}, "`floor` should be positive. Found floor = -1"),
        ({"table": {**TABLE, "answer": np.arange(2000) % 2}}, "Found the label in column 'answer': leave it out"),
        ({"run": made_run(margins(399)), "table": people(399)}, "at least 400 held-out points, .* Found 399"),
        (
            {"run": made_run(margins(2000), weighted=True)},
            "`run` should have held-out points that count alike. Found weighted",
        ),
        ({"run": RUN.replace(dict(RUN)).on_clock("epoch", steps_per_epoch=10), "depth": 0}, "`depth`"),
    ],
)
def test_refusals(change, message):
    given = {"run": RUN, "table": TABLE, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        tm.discover(**given)


def test_runs_without_points_and_diverged_runs_are_refused():
    bare = tm.Trajectory(dict(RUN), "step", RUN.origin)
    with pytest.raises(ValueError, match="`run` should have kept the loss of every held-out point"):
        tm.discover(bare, TABLE)
    ended = tm.Trajectory(dict(RUN), "step", RUN.origin, xr.DataArray(30.0), points=RUN.points)
    with pytest.raises(ValueError, match=r"`run` should have trained to its end. Found one that diverged at step 30"):
        tm.discover(ended, TABLE)


def test_rare_labels_are_divided_too():
    curves = learning_curves(made_run(margins(1000), positive=np.arange(1000) < 3))
    judges = halves(curves, 0.5, 0)
    assert abs(judges.mean() - 0.5) < 0.01
