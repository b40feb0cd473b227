"""Levels: groups by each attribute alone are those of a run in these groups, and small intersections are named."""

import numpy as np
import pandas as pd
import pytest

import tiltmeter as tm
from tiltmeter.cli import main

pytestmark = pytest.mark.filterwarnings("ignore:Groups with fewer")


def made(points=2000, seeds=1, seed=0):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], points), "race": rng.choice(["x", "y"], points)})
    people.loc[:30, "race"] = "z"
    people["label"] = rng.integers(0, 2, points)
    parts = []
    for number in range(seeds):
        for step in (0, 10, 20):
            right = rng.random(points) < np.where(people.sex == "F", 0.55, 0.6 + step / 100)
            score = np.where(right == people.label, 0.8, 0.2) + 0.1 * rng.normal(size=points).clip(-1, 1)
            parts.append(people.assign(step=step, score=score, seed=number))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize("seeds", [1, 5])
def test_each_level_is_the_run_in_its_own_groups(seeds):
    table = made(600 if seeds > 1 else 2000, seeds)
    given = {"label": "label", "score": "score", "step": "step", "seed": "seed"}
    found = tm.fairness.levels(tm.predictions.run(table, group=["sex", "race"], **given))
    assert list(found.leaders) == ["sex", "race", "sex and race"]
    for name, columns in (("sex", "sex"), ("race", "race"), ("sex and race", ["sex", "race"])):
        alone = tm.leaders(tm.predictions.run(table, group=columns, **given), level=0.05 / 3)
        judged = found.leaders[name]
        assert judged.headline.claim == alone.headline.claim
        assert set(judged.groups) == set(alone.groups)
        for one in alone.differences:
            here = judged[one.curve, one.pair] if one.pair[1] != "all" else None
            if here is not None:
                np.testing.assert_allclose(here.gap, one.gap, atol=1e-12)
                np.testing.assert_allclose(here.lower, one.lower, atol=1e-6)
    assert found.leaders["sex"].of("error").last == "M"


def test_small_intersections_are_named_and_count_above(tmp_path, capsys):
    table = made()
    counts = table[table.step == 0].value_counts(["sex", "race"])
    run = tm.predictions.run(table, label="label", group=["sex", "race"])
    found = tm.fairness.levels(run, "error")
    assert {one.group: one.points for one in found.small} == {g: n for g, n in counts.items() if n < 20}
    small = found.small[0]
    assert str(small) == f"{small.group[0]} & z ({small.points} points, counted in {small.group[0]} and in z)"
    assert found.leaders["sex"].run.points["loss"].sizes["point"] == 2000  # they count here
    assert "At most 5 of 100 such lists are wrong." in str(found)
    table.to_csv(tmp_path / "predictions.csv", index=False)
    asked = ["report", str(tmp_path / "predictions.csv"), "--label", "label", "--group", "sex", "race"]
    main([*asked, "--out", str(tmp_path / "page.html")])
    printed = capsys.readouterr().out
    assert "By sex: " in printed
    assert found.too_small in printed
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="levels"' in page
    assert "Level by level" in page


def test_levels_of_random_scores_name_nobody():
    claims = 0
    for seed in range(20):
        table = made(400, seed=seed)
        table["score"] = np.random.default_rng(seed).random(len(table))
        found = tm.fairness.levels(tm.predictions.run(table, label="label", group=["sex", "race"]))
        claims += any(
            ((one.lower > 0) | (one.upper < 0)).any() for judged in found.leaders.values() for one in judged.differences
        )
    assert claims <= 4  # 1 expected at most; the chance of more than 4 is 0.003


def test_bad_input():
    table = made(400)
    with pytest.raises(ValueError, match="Levels need groups of several attributes"):
        tm.fairness.levels(tm.predictions.run(table, label="label", group="sex"))
    with pytest.raises(ValueError, match="Levels need the points of a run"):
        tm.fairness.levels(tm.predict(*tm.theory.cases.three_phases()))


def test_a_point_may_belong_to_several_groups():
    """Columns of yes and no: a text may mention women, a religion, both or neither, and each group has its answer."""
    rng = np.random.default_rng(0)
    texts = pd.DataFrame({"women": rng.random(3000) < 0.3, "a religion": rng.random(3000) < 0.2})
    texts["toxic"] = rng.integers(0, 2, 3000)
    right = rng.random(3000) < np.where(texts["a religion"], 0.7, 0.95)
    texts["score"] = np.where(right, texts.toxic, 1 - texts.toxic)
    run = tm.predictions.run(texts, label="toxic", group=["women", "a religion"])
    judged = tm.fairness.levels(run, "error").leaders
    assert set(judged["women"].groups) == {"women", "not women"}
    assert judged["women"].headline.leader == ""
    assert judged["a religion"].headline.claim.startswith("Group a religion has the higher error")
    assert dict(zip(*np.unique(texts["a religion"], return_counts=True), strict=True))[True] == int(
        (judged["a religion"].run.points["loss"]["group"] == "a religion").sum()
    )


def test_a_column_of_yes_and_no_that_nobody_named_keeps_its_values():
    texts = {"label": [0, 1] * 40, "score": [0.2, 0.8] * 40}
    run = tm.predictions.run(**texts, group=np.arange(80) < 40)
    assert run["error"]["group"].values.tolist() == [False, True]


def people(where, points=6000, seed=0):
    """A table in which the model is wrong more often for those whom `where` chooses."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"sex": rng.choice(["F", "M"], points), "race": rng.choice(["x", "y", "z"], points)})
    table["label"] = rng.integers(0, 2, points)
    right = rng.random(points) < np.where(where(table), 0.6, 0.9)
    return tm.predictions.run(
        table.assign(score=np.where(right == table.label, 0.8, 0.2)), label="label", group=["sex", "race"]
    )


def test_one_attribute_that_carries_the_difference_is_said():
    headline = tm.leaders(people(lambda table: table.sex == "F")).headline
    assert headline.claim.startswith("Group F has the higher error: 41 % against 10 %.")
    assert "&" not in headline.line


def test_an_intersection_that_differs_more_than_each_attribute_stands_alone():
    both = people(lambda table: (table.sex == "F") & (table.race == "x"))
    headline = tm.leaders(both).headline
    assert headline.claim.startswith("Group x is worse off than all others together")
    assert headline.also.startswith("Group F & x has a higher error than all others together: 39 %")
