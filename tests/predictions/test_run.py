"""Predictions in, verdicts out: the same answers as from a probe, from every kind of table, without torch."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tiltmeter as tm
from tiltmeter.fairness.thresholds import own_threshold
from tiltmeter.report.runs import page


def run_of(table, **more):
    return tm.predictions.run(table, **{"label": "approved", "group": "sex", **more})


class Answering:
    """A module that looks its answers up, so that a probe sees exactly the scores of a table."""

    def __new__(cls, answers):
        import torch

        class Lookup(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.answers = torch.nn.Parameter(torch.as_tensor(answers[0]).clone())

            def forward(self, x):
                return self.answers[x[:, 0].long()]

            def become(self, step):
                with torch.no_grad():
                    self.answers.copy_(torch.as_tensor(answers[step]))

        return Lookup()


def probed(table, names, loss, group="sex", settings=None):
    """The run of a probe that stands at the evaluations of the table; its steps count 0, 1, 2, ..."""
    steps = sorted(table.step.unique())
    answers = [table[table.step == step][names].to_numpy().copy() for step in steps]
    first = table[table.step == steps[0]]
    x = np.arange(len(first), dtype=np.float32)[:, None]
    data = tm.GroupedData(x, first.approved.to_numpy(), first[group].to_numpy())
    model = Answering(answers)
    with tm.Probe(model, data, tm.Watch(when=tm.record.every(1)), loss=loss, budget=None) as probe:
        for place in range(len(steps) - 1):
            model.become(place)
            probe(place)
        model.become(len(steps) - 1)
    return probe.trajectory()


def numbered(table):
    """The same table with steps 0, 1, 2, ..."""
    return table.assign(step=table.step.rank(method="dense").astype(int) - 1)


def same_curves(ours, theirs):
    assert set(ours) == set(theirs)
    for name, curve in theirs.items():
        assert ours[name].identical(curve), name


def test_the_same_points_through_a_probe_give_the_same_to_the_bit(table, tmp_path):
    import torch

    ours = run_of(numbered(table))
    theirs = probed(numbered(table), "score", torch.nn.BCELoss())
    same_curves(ours, theirs)
    assert ours.points == theirs.points
    found, expected = tm.leaders(ours), tm.leaders(theirs)
    assert found.to_json() == expected.to_json()
    for one, other in zip(found.differences, expected.differences, strict=True):
        np.testing.assert_array_equal(one.lower, other.lower)
        np.testing.assert_array_equal(one.upper, other.upper)
    alike = tm.Trajectory(ours, ours.clock, theirs.origin, points=ours.points)
    pages = [page([one], tmp_path / f"{name}.html", title="x") for name, one in (("a", alike), ("b", theirs))]
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert pages[0][1] == pages[1][1]


def test_the_same_for_several_classes(many_classes):
    from tiltmeter.measures.output_kind import cross_entropy_of_probabilities

    names = ["p0", "p1", "p2"]
    ours = run_of(numbered(many_classes), score=names)
    theirs = probed(numbered(many_classes), names, cross_entropy_of_probabilities)
    same_curves(ours, theirs)
    assert ours.points == theirs.points
    assert tm.leaders(ours).to_json() == tm.leaders(theirs).to_json()


@pytest.mark.parametrize("kind", ["sigmoid", "softmax", "values"])
def test_scores_before_a_sigmoid_or_softmax_are_said_by_the_loss(kind, table, many_classes):
    """Decisions agree to the bit; losses to the rounding of single precision, in which torch computes them."""
    if kind == "softmax":
        frame, names, loss = numbered(many_classes), ["p0", "p1", "p2"], tm.losses.CrossEntropy()
        frame[names] = np.log(frame[names])
    else:
        frame, names = numbered(table), "score"
        loss = tm.Logistic() if kind == "sigmoid" else tm.Square()
        frame["score"] = (4 * frame.score - 2).astype(np.float32)
    ours, theirs = run_of(frame, score=names, loss=loss), probed(frame, names, loss)
    for name in ("error", *(("tpr", "fpr", "positive_rate") if kind != "softmax" else ())):
        assert ours[name].identical(theirs[name])
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict", "arrays", "csv", "parquet", "wide"])
def test_every_kind_of_table_gives_the_same(kind, table, tmp_path):
    expected = run_of(table)
    names = {"label": "approved", "group": "sex"}
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(table)
    elif kind == "arrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(table)
    elif kind == "dict":
        frame = {name: table[name].to_numpy() for name in table}
    elif kind == "arrays":
        frame, names = None, {"label": table.approved.to_numpy(), "group": table.sex.tolist()}
        names |= {"score": table.score.to_numpy(), "step": table.step.to_numpy()}
    elif kind == "wide":
        frame = table[table.step == 0].drop(columns=["score", "step"]).reset_index(drop=True)
        for step in table.step.unique():
            frame[f"p{step}"] = table.loc[table.step == step, "score"].to_numpy()
        names["score"] = {step: f"p{step}" for step in (160, 0, 10, 40)}
    elif kind in ("csv", "parquet"):
        frame = tmp_path / f"table.{kind}"
        if kind == "csv":  # which does not say single precision
            expected = run_of(table.assign(score=table.score.astype(float)))
        table.to_csv(frame, index=False, float_format="%.17g") if kind == "csv" else table.to_parquet(frame)
    else:
        frame = table
    ours = tm.predictions.run(frame, **names)
    for name in expected:
        np.testing.assert_allclose(ours[name].values, expected[name].values, rtol=0, atol=1e-12 * (kind == "csv"))
    np.testing.assert_array_equal(ours.points["decided_positive"], expected.points["decided_positive"])


def test_two_columns_of_classes_in_a_dict(many_classes):
    last = many_classes[many_classes.step == 160]
    arrays = {"p": last[["p0", "p1", "p2"]].to_numpy(), "y": last.approved.to_numpy(), "g": last.sex.to_numpy()}
    ours = tm.predictions.run(arrays, label="y", score="p", group="g")
    assert ours["class_accuracy"].sizes["class"] == 3
    assert tm.leaders(ours, "error").differences


def test_everything_after_a_run_works_on_predictions(table, tmp_path):
    run = run_of(table)
    assert str(tm.leaders(run, "error")).startswith("Group F has the higher error")
    assert tm.gate(run, 0.02, "error").verdict == "fails"
    assert own_threshold(run, "tpr", "F", "M").threshold > 0
    assert "chance" in str(tm.fairness.calibration(run))
    assert tm.report([run], tmp_path / "page.html").read_text().count("<html") == 1
    assert tm.export.write(run, tmp_path / "run.csv").exists()
    tm.results.to_model_card(run, tmp_path / "README.md")
    assert "tiltmeter" in (tmp_path / "README.md").read_text()
    assert tm.fairness.stopping(run)
    tm.save(run, tmp_path / "run")
    loaded = tm.load(tmp_path / "run")
    assert loaded == run
    assert loaded.points == run.points
    assert str(tm.leaders(loaded)) == str(tm.leaders(run))
    people = table[table.step == 0][["sex", "race"]]
    assert [group.name for group in tm.discover(loaded, people).groups] == ["sex = F"]


def test_decisions_alone(table, tmp_path):
    scored = run_of(table)
    decided = run_of(table.assign(decision=table.score > 0.5).drop(columns="score"))
    assert set(decided.points) == {"decided_positive"}
    assert "loss" not in decided
    for name in ("error", "tpr", "fpr", "positive_rate", "error_se"):
        assert decided[name].identical(scored[name])
    assert tm.leaders(decided, "error").to_json() == tm.leaders(scored, "error").to_json()
    assert "true positive rate" in str(tm.leaders(decided))
    tm.report([decided], tmp_path / "page.html")
    assert tm.gate(decided, 0.02, "tpr").verdict == "fails"


def test_decisions_as_words_and_of_classes(table, many_classes):
    words = table.assign(approved=np.where(table.approved == 1, "yes", "no"))
    words["decision"] = np.where(words.score > 0.5, "yes", "no")
    named = run_of(words.drop(columns="score"), positive="yes")
    assert named["tpr"].identical(run_of(table)["tpr"])
    several = many_classes.assign(decision=many_classes[["p0", "p1", "p2"]].to_numpy().argmax(1))
    ours = run_of(several.drop(columns=["p0", "p1", "p2"]))
    assert ours["error"].identical(run_of(many_classes, score=["p0", "p1", "p2"])["error"])


def test_a_decision_beside_scores_takes_the_place_of_one_half(table):
    strict = run_of(table.assign(decided=(table.score > 0.8).astype(int)), decision="decided", score="score")
    plain = run_of(table)
    assert strict["loss"].identical(plain["loss"])
    assert (strict["positive_rate"] < plain["positive_rate"]).all()


def test_several_seeds_are_one_run(table):
    seeds = pd.concat([made(seed).assign(seed=seed) for seed in range(5)], ignore_index=True)
    run = run_of(seeds)
    assert run["loss"].sizes["seed"] == 5
    assert run.points["loss"].sizes["seed"] == 5
    assert "5 trainings" in str(tm.leaders(run, "error"))
    one = run_of(seeds[seeds.seed == 3].drop(columns="seed"))
    np.testing.assert_array_equal(run["loss"].sel(seed=3), one["loss"])


def made(seed):
    """Other predictions for the same points."""
    rng = np.random.default_rng(seed)
    points = np.random.default_rng(100)
    label, sex = points.integers(0, 2, 600), points.choice(["F", "M"], 600)
    noise = rng.normal(size=600) * np.where(sex == "F", 1.5, 0.5)
    score = 1 / (1 + np.exp(-(2 * label - 1 + noise)))
    return pd.DataFrame({"approved": label, "sex": sex, "score": score})


def test_groups_of_several_columns_are_intersections(table):
    run = run_of(table, group=["sex", "race"])
    assert set(run["error"].coords["group"].values.tolist()) == {(a, b) for a in "FM" for b in "xy"}


def test_points_in_any_order_by_their_name(table):
    mixed = table.sample(frac=1, random_state=0)
    with pytest.raises(ValueError, match=r"same order\. Found another `label` at step .* with point=\."):
        run_of(mixed)
    ours = run_of(mixed, point="id")
    for name, curve in run_of(table).items():
        np.testing.assert_array_equal(ours[name], curve)


def test_weights_are_those_of_weighted_means(table):
    last = table[table.step == 160].reset_index(drop=True)
    last["mass"] = np.random.default_rng(0).random(len(last))
    run = run_of(last, weight="mass")
    wrong = (last.score > 0.5) != (last.approved == 1)
    for name in "FM":
        own = last.sex == name
        expected = np.average(wrong[own], weights=last.mass[own])
        np.testing.assert_allclose(run["error"].sel(group=name).item(), expected, rtol=1e-12)
    assert "weighted" in str(tm.leaders(run))


def test_rows_without_a_group_are_dropped_and_counted(table):
    last = table[table.step >= 40].reset_index(drop=True)
    last.loc[last.id < 7, "sex"] = None
    with pytest.warns(UserWarning, match="Dropped 7 of 1,200 rows"):
        run = run_of(last)
    assert run.points["loss"].sizes["point"] == 1193
    whole = run_of(table[table.step >= 40])
    np.testing.assert_array_equal(run.points["loss"].values, whole.points["loss"].values[:, 7:])


@pytest.mark.parametrize(
    ("change", "more", "error", "words"),
    [
        ({"score": 1.5}, {}, ValueError, "`score` should hold probabilities, from 0 to 1. Found 1.5 at step 0"),
        ({"score": np.nan}, {}, ValueError, "`score` should be finite. Found NaN or infinity"),
        ({"score": "high"}, {}, TypeError, "`score` should name columns of numbers. Found words in the column 'score'"),
        ({}, {"label": "nothing"}, KeyError, "`label`: no column 'nothing'"),
        ({}, {"score": "nothing"}, KeyError, "`score`: no column 'nothing'"),
        ({}, {"score": None, "label": None}, TypeError, "`label` should name a column or hold one value"),
        ({"step": -1}, {}, ValueError, "`step` should be a number from 0 on. Found -1"),
        ({"step": "early"}, {}, ValueError, "`step` should be a number from 0 on. Found 'early'"),
        ({}, {"decision": "race"}, ValueError, "`decision` should hold labels"),
        ({}, {"loss": tm.losses.CrossEntropy()}, TypeError, "CrossEntropy() does not fit one column of scores."),
        ({}, {"loss": tm.losses.Hinge()}, TypeError, "`loss` should be None (scores are probabilities)"),
        ({}, {"score": {}}, ValueError, "`score` should give at least one evaluation. Found none."),
        ({}, {"score": {1: "score"}, "step": "step"}, ValueError, "`step` should be left out"),
        ({}, {"score": np.ones(3)}, ValueError, "Lengths should agree. Found 4800 in frame, 3 in score."),
        ({}, {"point": "race"}, ValueError, "`point` should name every point once. Found one twice at step 0."),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, more, error, words, table):
    with pytest.raises(error) as raised:
        run_of(table.assign(**change), **more)
    assert words in str(raised.value)


def test_more_bad_input(table, many_classes):
    with pytest.raises(ValueError, match=r"same points\. Found 1200 rows at step 10 and 1199 at step 0\."):
        run_of(table.iloc[1:])
    with pytest.raises(ValueError, match="`score` or `decision` should name what was predicted"):
        run_of(table.drop(columns="score"))
    with pytest.raises(ValueError, match="sum of 0"):
        run_of(many_classes.assign(p0=0.0), score=["p0", "p1", "p2"])
    with pytest.raises(ValueError, match="`loss` says what scores are"):
        run_of(table.drop(columns="score").assign(decision=1), loss=tm.Logistic())


def test_leaders_of_predictions_import_nothing_heavy(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    code = (
        "import sys, json, tiltmeter as tm;"
        f"run = tm.predictions.run({str(tmp_path / 'table.csv')!r}, label='approved', group='sex');"
        "print(tm.leaders(run)); print(json.dumps(sorted({'torch', 'numba', 'altair'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "rate" in lines[0]
    assert json.loads(lines[-1]) == []


def test_values_are_those_of_fairlearn(table):
    metrics = pytest.importorskip("fairlearn.metrics")
    last = table[table.step == 160]
    decided = (last.score > 0.5).astype(int)
    run = run_of(last, group=["sex", "race"])
    names = {
        "positive_rate": metrics.selection_rate,
        "tpr": metrics.true_positive_rate,
        "fpr": metrics.false_positive_rate,
        "error": lambda y_true, y_pred: (y_true != y_pred).mean(),
    }
    frame = metrics.MetricFrame(
        metrics=names, y_true=last.approved, y_pred=decided, sensitive_features=last[["sex", "race"]]
    )
    for name in names:
        for group, value in frame.by_group[name].items():
            place = run[name].coords["group"].values.tolist().index(group)
            assert abs(run[name].values[-1, place] - value) < 1e-12


def test_a_question_is_kept_with_the_run(table, tmp_path):
    question = tm.Question(decision="approved", outcome="repaid", kind="benefit")
    run = tm.predictions.run(table, label="approved", group="sex", question=question)
    plain = tm.predictions.run(table, label="approved", group="sex")
    assert str(tm.leaders(run)) == str(tm.leaders(plain, question=question))
    tm.save(run, tmp_path / "run")
    assert "repaid" in Path(tm.report([tmp_path / "run"], tmp_path / "page.html")).read_text(encoding="utf-8")
    with pytest.raises(TypeError, match="`question` should be"):
        tm.predictions.run(table, label="approved", group="sex", question="who?")
