"""Several attributes: each alone has the values of a run in its groups, and small intersections are named."""

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
def test_each_attribute_has_the_values_of_the_run_in_its_own_groups(seeds):
    table = made(600 if seeds > 1 else 2000, seeds)
    given = {"label": "label", "score": "score", "step": "step", "seed": "seed"}
    both = tm.leaders(tm.predictions.run(table, group=["sex", "race"], **given))
    for columns in ("sex", "race"):
        alone = tm.leaders(tm.predictions.run(table, group=columns, **given))
        for one in alone.differences:
            here = both[one.curve, one.pair]
            np.testing.assert_allclose(here.gap, one.gap, atol=1e-6)
            assert here.people == one.people
    assert both["error", ("F", "M")].leader[-1] == "M"


def test_small_intersections_are_named_and_count_above(tmp_path, capsys):
    table = made()
    counts = table[table.step == 0].value_counts(["sex", "race"])
    run = tm.predictions.run(table, label="label", group=["sex", "race"])
    found = tm.leaders(run, "error")
    for group, count in counts.items():
        assert (f"{group[0]} & {group[1]} ({count})" in str(found)) == (count < 20)
    assert sum(found["error", ("F", "M")].people) == 2000  # they count here
    table.to_csv(tmp_path / "predictions.csv", index=False)
    asked = ["report", str(tmp_path / "predictions.csv"), "--label", "label", "--group", "sex", "race"]
    main([*asked, "--out", str(tmp_path / "page.html")])
    assert tm.leaders(run).headline.line in " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="levels"' in page
    assert "F &amp; x" in page


def test_attributes_and_intersections_of_random_scores_name_nobody():
    claims = 0
    for seed in range(20):
        table = made(400, seed=seed)
        table["score"] = np.random.default_rng(seed).random(len(table))
        judged = tm.leaders(tm.predictions.run(table, label="label", group=["sex", "race"]))
        claims += any(one.sign.any() for one in judged.differences)
    assert claims <= 4  # 1 expected at most; the chance of more than 4 is 0.003


def test_a_point_may_belong_to_several_groups():
    """Columns of yes and no: a text may mention women, a religion, both or neither, and each group has its answer."""
    rng = np.random.default_rng(0)
    texts = pd.DataFrame({"women": rng.random(3000) < 0.3, "a religion": rng.random(3000) < 0.2})
    texts["toxic"] = rng.integers(0, 2, 3000)
    right = rng.random(3000) < np.where(texts["a religion"], 0.7, 0.95)
    texts["score"] = np.where(right, texts.toxic, 1 - texts.toxic)
    run = tm.predictions.run(texts, label="toxic", group=["women", "a religion"])
    judged = tm.leaders(run, "error")
    assert judged.headline.claim.startswith("Group a religion has the higher error")
    assert judged["error", ("women", "not women")].leader[-1] == ""
    assert judged["error", ("a religion", "not a religion")].people[0] == int(texts["a religion"].sum())


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
