"""gate, init and doctor: exit codes, files, sentences."""

import importlib
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.cli.toml_file import TRAINING_FILE, read_tables


def trained(gap=0.2, error=0.01, seeds=None, groups=("a", "b")):
    rng = np.random.default_rng(0)
    times = [0, 10]
    last = np.array([0.5 + gap * i for i in range(len(groups))])
    shape = (2, len(groups)) if seeds is None else (2, len(groups), seeds)
    values = np.broadcast_to(last.reshape(1, -1, *([1] * (seeds is not None))), shape).copy()
    if seeds is not None:
        values += error * rng.normal(size=shape)
    dims = ("time", "group") if seeds is None else ("time", "group", "seed")
    coords = {"time": times, "group": list(groups)} | ({} if seeds is None else {"seed": range(seeds)})
    curves = {"tpr": xr.DataArray(values, dims=dims, coords=coords)}
    if seeds is None and error is not None:
        curves["tpr_se"] = xr.full_like(curves["tpr"], error)
    return tm.Trajectory(curves, "step", tm.record.Origin("training"))


def kept(decided, groups):
    """A run with these decisions (evaluations, points), all of positives."""
    names, times = sorted(set(groups)), 10 * np.arange(len(decided))
    coords = {"time": times, "group": ("point", groups), "positive": ("point", np.ones(len(groups), dtype=bool))}
    share = np.stack([decided[:, groups == name].mean(1) for name in names], 1)
    curve = xr.DataArray(share, dims=("time", "group"), coords={"time": times, "group": names})
    points = {"decided_positive": xr.DataArray(decided, dims=("time", "point"), coords=coords)}
    return tm.Trajectory({"tpr": curve}, "step", tm.record.Origin("training"), points=points)


class TestGate:
    def test_a_clear_gap_fails_the_job(self, run):
        tm.save(trained(), "one")
        code, out, _ = run("gate", "one", "--curve", "tpr", "--gap", "0.05")
        assert code == 1
        assert out.startswith(
            "Fails: the true positive rates of group a and group b are 20 points apart, 17 to 23 at step 10. "
            "Allowed: 5 points."
        )

    def test_what_the_points_cannot_tell_is_an_answer_of_its_own(self, run):
        tm.save(trained(gap=0.1, error=0.05), "few")
        code, out, _ = run("gate", "few", "--curve", "tpr", "--gap", "0.05")
        assert code == 3
        assert out.startswith(
            "Cannot tell: the true positive rates of group a and group b are 10 points apart, -6 to 26"
        )
        assert run("gate", "few", "--curve", "tpr", "--gap", "0.05", "--unclear", "pass")[0] == 0
        code, out, _ = run("gate", "few", "--curve", "tpr", "--gap", "0.05", "--json")
        assert (code, json.loads(out)["verdict"], json.loads(out)["passed"]) == (3, "cannot tell", False)

    def test_a_strict_gate_judges_the_upper_limit_and_a_measured_one_the_gap(self, run):
        tm.save(trained(gap=0.04, error=0.05), "few")
        asked = ("gate", "few", "--curve", "tpr", "--gap", "0.05")
        assert [run(*asked, *how)[0] for how in ((), ("--strict",), ("--measured",))] == [3, 1, 0]
        assert "Allowed: 5 points, by the measured gap alone." in run(*asked, "--measured")[1]
        assert run(*asked, "--strict", "--measured")[0] == 2

    def test_a_gap_that_is_clear_fails_whatever_is_unclear(self, run):
        tm.save(trained(), "clear")
        code, out, _ = run("gate", "clear", "--curve", "tpr", "--gap", "0.05", "--unclear", "pass", "--json")
        assert (code, json.loads(out)["passed"]) == (1, False)

    def test_what_is_within_says_so(self, run):
        tm.save(trained(gap=0.0), "one")
        code, out, _ = run("gate", "one", "--curve", "tpr", "--gap", "0.05", "--json")
        assert code == 0
        assert json.loads(out)["sentence"].startswith(
            "Passes: the true positive rates of group a and group b are 0 points"
        )

    def test_bad_input_exits_with_two(self, run):
        tm.save(trained(), "one")
        assert run("gate", "one", "--curve", "tpr", "--gap", "-1")[0] == 2
        assert run("gate", "absent", "--gap", "0.1")[0] == 2

    def test_few_points_are_counted_and_tiny_groups_named(self):
        rng = np.random.default_rng(0)
        groups = np.array(["men"] * 200 + ["women"] * 27 + ["others"] * 5)
        answer = tm.gate(kept(rng.random((1, 232)) < 0.5, groups), 0.05, "tpr")
        assert answer.verdict == "cannot tell"
        assert answer.governs.people == (27, 205)
        assert "more women would settle it." in str(answer)
        assert "Too few to judge: others." in str(answer)

    def test_seeds_widen_by_their_scatter(self):
        assert tm.gate(trained(seeds=8), 0.1, "tpr").verdict == "fails"
        assert tm.gate(trained(gap=0.0, seeds=8), 0.1, "tpr").verdict == "passes"

    def test_limits_are_those_that_leaders_gives_the_last_evaluation(self):
        rng = np.random.default_rng(0)
        groups = np.array(["a", "b"] * 300)
        decided = rng.random((3, 600)) < np.where(groups == "a", 0.3, 0.5)
        for run in (kept(decided, groups), kept(decided[-1:], groups)):
            (found,), one = tm.gate(run, 0.02, "tpr").gaps, tm.leaders(run, "tpr").chosen
            assert (found.lower[-1], found.upper[-1]) == (one.lower[-1], one.upper[-1])
            assert tm.gate(run, 0.02, "tpr").verdict == "fails"

    def test_random_groups_fail_as_seldom_as_the_level_says(self):
        rng = np.random.default_rng(3)
        deals = [kept(rng.random((1, 200)) < 0.4, rng.permutation(["a", "b"] * 100)) for _ in range(40)]
        assert sum(tm.gate(run, 0.0, "tpr").verdict == "fails" for run in deals) <= 6  # 5 % of 40 is 2

    def test_weighted_points_are_not_judged(self):
        run = kept(np.ones((1, 40), dtype=bool), np.array(["a", "b"] * 20))
        weighted = tm.Trajectory(dict(run), "step", tm.record.Origin("training", {"held_out": {"weighted": True}}))
        with pytest.raises(ValueError, match="Found that tpr: it is not judged, since its points are weighted"):
            tm.gate(weighted, 0.1, "tpr")

    @pytest.mark.slow
    def test_no_more_jobs_fail_than_the_level_says(self):
        rng = np.random.default_rng(1)
        failed = 0
        for _ in range(2000):
            run = trained(gap=0.0, error=0.02, groups="abcd")
            noisy = run["tpr"] + 0.02 * rng.normal(size=run["tpr"].shape)
            noisy_run = tm.Trajectory({"tpr": noisy, "tpr_se": run["tpr_se"]}, "step", run.origin)
            failed += tm.gate(noisy_run, 0.0, "tpr").verdict == "fails"
        assert failed / 2000 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)
        assert failed / 2000 > 0.005

    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (lambda: tm.gate(trained(error=None), 0.1, "tpr"), "Found 1 seed and no tpr_se."),
            (lambda: tm.gate(trained(seeds=2), 0.1, "tpr"), "Found 2 seeds and no tpr_se."),
            (lambda: tm.gate(trained(), 5, "tpr"), "`gap` is a share where rates are compared: 0.05 is 5 points. Found gap = 5."),
            (lambda: tm.gate(trained(), -1, "tpr"), "`gap` should not be negative. Found gap = -1."),
            (lambda: tm.gate(trained(), 0.1, "tpr", 2), "`level` should lie strictly between 0 and 1. Found level = 2."),
            (lambda: tm.gate(trained(), 0.1, "tpr", judge="x"), "`judge` should be one of limits, strict, measured."),
            (lambda: tm.gate(trained(groups=("a",)), 0.1, "tpr"), "A gate needs a curve of at least two groups"),
            (lambda: tm.gate(trained(gap=np.nan), 0.1, "tpr"), "Every group should have a value of tpr at the last evaluation."),
        ],
    )  # fmt: skip
    def test_sentences(self, make, sentence):
        with pytest.raises(ValueError) as error:  # noqa: PT011
            make()
        assert sentence in str(error.value)


class TestInit:
    def people(self):
        n = 200
        return pd.DataFrame(
            {
                "name": [f"n{i}" for i in range(n)],
                "age": np.random.default_rng(0).normal(size=n),
                'job "x"': ["cook", "clerk"] * 100,
                "sex": ["F", "M", "M", "F"] * 50,
                "wage": [">50K", "<=50K"] * 100,
            }
        )

    def test_the_file_is_commented_and_trains(self, run, tmp_path):
        self.people().to_csv("people.csv", index=False)
        code, out, err = run("init", "people.csv")
        assert code == 0, err
        assert out.splitlines()[0] == (
            "Wrote training.toml: label wage, positive >50K, group sex (guessed: label, positive label, group, "
            "question)."
        )
        tables = read_tables(tmp_path / "training.toml", TRAINING_FILE)
        assert tables["data"]["columns"] == ["name", "age", 'job "x"']
        assert (tmp_path / "training.toml").read_text().count("#") > 8
        code, _, err = run("init", "people.csv")
        assert code == 2
        assert "already exists and is never overwritten" in err
        pytest.importorskip("torch")
        text = (tmp_path / "training.toml").read_text().replace("steps = 2000", "steps = 5")
        (tmp_path / "training.toml").write_text(text)
        assert run("train", "training.toml")[0] == 0

    @pytest.mark.parametrize(
        ("labels", "argv", "line"),
        [
            (("approved", "denied"), (), 'positive = "approved"  # guessed, check it: the label that is a yes'),
            (("approved", "denied"), ("--positive", "denied"), 'positive = "denied"  # the label that is a yes'),
            (("bad", "good"), (), 'positive = "good"  # guessed, check it'),
            (("x", "y'\"z"), (), 'positive = "y\'\\"z"  # guessed, check it'),
            ((1, 0), (), "positive = 1  # guessed, check it"),
            ((True, False), (), "positive = true  # guessed, check it"),
        ],
    )
    def test_which_label_is_the_yes_is_written_down(self, run, tmp_path, labels, argv, line):
        self.people().assign(wage=list(labels) * 100).to_csv("people.csv", index=False)
        code, _, err = run("init", "people.csv", "--label", "wage", *argv)
        assert code == 0, err
        assert f"\n{line}" in (tmp_path / "training.toml").read_text()
        tables = read_tables(tmp_path / "training.toml", TRAINING_FILE)
        assert tables["data"]["positive"] in labels

    def test_of_three_labels_none_is_the_yes(self, run, tmp_path):
        self.people()[:198].assign(wage=["a", "b", "c"] * 66).to_csv("people.csv", index=False)
        assert run("init", "people.csv", "--label", "wage")[0] == 0
        assert "positive" not in (tmp_path / "training.toml").read_text()

    def test_chosen_columns(self, run):
        self.people().to_parquet("people.parquet")
        code, out, _ = run("init", "people.parquet", "--label", "sex", "--group", "wage", "--to", "t.toml", "--json")
        assert code == 0
        assert json.loads(out)["label"] == "sex"

    @pytest.mark.parametrize(
        ("argv", "sentence"),
        [
            (("people.csv", "--label", "pay"), "`label`: no column 'pay'. There are: name, age"),
            (("people.csv", "--positive", "yes"), "`positive` should be one of two labels of wage. Found 'yes', of <=50K, >50K."),
            (("none.csv",), "No file none.csv."),
            (("people.csv", "--to", "no/where.toml"), "--to should lie in an existing folder."),
            (("numbers.csv",), "No column with 2 to 20 different values is left for the label: say which column it is."),
        ],
    )  # fmt: skip
    def test_sentences(self, run, argv, sentence):
        self.people().to_csv("people.csv", index=False)
        pd.DataFrame({"a": range(100)}).to_csv("numbers.csv", index=False)
        code, _, err = run("init", *argv)
        assert code == 2
        assert sentence in err


class TestDoctor:
    def test_what_is_here(self, run):
        code, out, _ = run("doctor")
        assert code == 0
        assert out.startswith("Everything that tiltmeter needs is installed.")
        assert "numpy" in out
        code, out, _ = run("doctor", "--json")
        assert json.loads(out)["missing"] == []

    def test_what_is_missing(self, run, monkeypatch):
        doctor = importlib.import_module("tiltmeter.cli.doctor")
        real = doctor._version
        monkeypatch.setattr(doctor, "_version", lambda name: None if name in ("scipy", "skorch") else real(name))
        code, out, _ = run("doctor")
        assert code == 1
        assert out.startswith("Missing: scipy.")
        assert "pip install 'tiltmeter[skorch]'" in out
