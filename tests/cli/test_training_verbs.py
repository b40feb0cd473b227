"""train, compare, report and show --follow: sentences first, files, JSON, and exit codes."""

import json
import threading
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.cli.show import growing

torch = pytest.importorskip("torch")

DIGITS = """
[data]
source = "digits"
share = 0.9

[model]
hidden = [16]

[training]
lr = 0.1
steps = 60
batch = 16
checkpoint = 20

[evaluations]
per_decade = 5
"""


def people(rows=400):
    rng = np.random.default_rng(0)
    age, sex = rng.normal(size=rows), rng.choice(["F", "M"], rows)
    wage = np.where(age + (sex == "M") + 0.5 * rng.normal(size=rows) > 0.5, ">50K", "<=50K")
    return pd.DataFrame({"age": age, "job": rng.choice(["x", "y", "z"], rows), "sex": sex, "wage": wage})


class TestTrain:
    def test_digits_to_a_run_and_a_report(self, run, tmp_path):
        (tmp_path / "digits.toml").write_text(DIGITS)
        code, out, err = run("train", "digits.toml", "--to", "one", "--save", "one.svg")
        assert code == 0, err
        assert out.startswith("Group ")
        assert " error of " in out.splitlines()[0]
        assert "Training on 1,000 points, with 1,794 held-out points" in err
        assert (tmp_path / "one.svg").exists()
        code, again, _ = run("train", "digits.toml", "--to", "one", "--resume")
        assert code == 0
        assert again.splitlines()[0] == out.splitlines()[0]
        code, _, err = run("train", "digits.toml", "--to", "one")
        assert code == 2
        assert "already holds a run" in err

        (tmp_path / "fair.toml").write_text(
            DIGITS.replace(
                "batch = 16", "batch = 16\nproportions = { turned = 0.5, upright = 0.5 }\nweights = { turned = 2.0 }"
            )
        )
        assert run("train", "fair.toml", "--to", "two", "--json")[0] == 0
        code, out, _ = run("compare", "one", "two")
        assert code == 0
        assert out.startswith("one: ")
        assert "gap over training" in out
        code, out, _ = run("compare", "one", "two", "--json", "--curve", "error")
        found = json.loads(out)
        assert [row["run"] for row in found["runs"]] == ["one", "two"]
        assert found["curve"] == "error"
        code, out, _ = run("report", "one", "two", "-o", "page.html", "--title", "Mine")
        assert code == 0
        first = out.splitlines()[0]
        assert first == tm.leaders(tm.load("one")).headline.line
        assert out.splitlines()[-1].startswith("Page: ")
        assert "<title>Mine</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")
        code, out, _ = run("report", "one", "-o", "page.html", "--json")
        assert first.startswith(json.loads(out)["headline"])
        code, out, _ = run("show", "one")
        assert out.splitlines()[0] == first
        assert run("report", "one", "--kind", "good")[0] == 2
        assert run("report", "one", "--decided", "flagged")[0] == 2  # without an outcome
        assert tm.load("two").origin.settings["recipe"]["proportions"] == [["turned", 0.5], ["upright", 0.5]]

    def test_schedule_clip_and_order_of_the_table_are_those_of_the_recipe(self, run, tmp_path):
        more = (
            'batch = 16\norder = 3\nclip = 0.5\nloss = "cross-entropy"\n'
            'lr = { schedule = "Cosine", initial = 0.1, duration = 60 }'
        )
        (tmp_path / "t.toml").write_text(DIGITS.replace("lr = 0.1\n", "").replace("batch = 16", more))
        code, _, err = run("train", "t.toml", "--to", "run")
        assert code == 0, err
        found = tm.load("run")
        expected = tm.Recipe(
            schedule=tm.schedules.Cosine(0.1, 60), steps=60, batch=16, order=3, clip=0.5, loss=tm.losses.CrossEntropy()
        )
        assert tm.Recipe.from_json(found.origin.settings["recipe"]) == expected
        (tmp_path / "t.toml").write_text((tmp_path / "t.toml").read_text().replace("clip = 0.5", "clip = 0.25"))
        code, _, err = run("train", "t.toml", "--to", "run", "--resume")
        assert code == 2
        assert "`settings.recipe.clip` was 0.5 and is now 0.25." in err

    def test_a_table(self, run, tmp_path):
        people().to_csv(tmp_path / "people.csv", index=False)
        (tmp_path / "t.toml").write_text(
            '[data]\nsource = "people.csv"\nlabel = "wage"\ngroup = "sex"\nheld_out = 0.5\n[model]\nhidden = []\n'
            '[training]\noptimiser = "adam"\nlr = 0.01\nepochs = 5\nloss = "logistic"\n'
        )
        code, out, err = run("train", "t.toml", "--curve", "error", "--json")
        assert code == 0, err
        assert "Labels: <=50K = 0, >50K = 1" in err
        assert set(json.loads(out)["final"]) >= {"error", "tpr", "fpr", "positive_rate"}

    def test_intersections_of_a_table(self, run, tmp_path):
        people(600).to_csv(tmp_path / "people.csv", index=False)
        (tmp_path / "t.toml").write_text(
            '[data]\nsource = "people.csv"\nlabel = "wage"\ngroup = ["sex", "job"]\nheld_out = 0.5\n'
            "[training]\nlr = 0.1\nsteps = 20\n"
        )
        assert run("train", "t.toml", "--to", "run")[0] == 0
        groups = tm.load("run")["loss"].group.values.tolist()
        assert groups[0] == ("F", "x")
        assert len(groups) == 6
        out = run("show", "run")[1]
        assert "others" in out
        rows = [line for line in out.splitlines() if line.strip().startswith(("F & ", "M & "))]
        assert len(rows) == 6  # one for each group, and none without a verdict
        assert all(row.rstrip().endswith(("higher", "lower", "not clear", "not judged")) for row in rows)

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("[dta]\n", "unknown key 'dta'. There are: data, problem, model, training, question, evaluations, forecast."),
            ("[training]\nrate = 1\n", "[training]: unknown key 'rate'."),
            ("[training]\nsteps = 5\n", "[training] needs `lr`, the learning rate."),
            ('[training]\nlr = 1\nsteps = 5\noptimiser = "lion"\n', "[training] optimiser: no 'lion'. There are: sgd, adam, adamw."),
            ('[training]\nlr = 1\nsteps = 5\nloss = "l1"\n', "[training] loss: no 'l1'. There are: square, logistic, hinge, cross-entropy."),
            ('[training]\nlr = 1\nsteps = 5\nmomentum = 0.9\noptimiser = "adam"\n', "momentum belongs to sgd. Found optimiser = 'adam'."),
            ('[model]\nactivation = "sin"\n[training]\nlr = 1\nsteps = 5\n', "[model] activation: no 'sin'. There are: relu, tanh, gelu."),
            ('[data]\nsource = "none.csv"\n', "[data] source: no file none.csv."),
            ('[data]\nsource = "t.tml"\n', "[data] source: no file t.tml. Did you mean 't.toml'?"),
            ('[data]\nsource = "none.csv"\n[training]\noptimiser = "lion"\n', "[training] optimiser: no 'lion'."),
            ('[data]\npositive = "a"\n', "[data] `positive` chooses a label of a table of your own. Found source = 'digits'."),
            ('[data]\nsource = "t.toml"\n', "[data] of a table needs `label`, the name of a column."),
            ("[training]\nlr = 1\n", "Say how long to train with either steps= or epochs=."),
            ("[data]\nshare = 0.1\n", "`share` should be at least 0.5 and below 1. Found share = 0.1."),
            ("nonsense", "is not valid TOML"),
        ],
    )  # fmt: skip
    def test_sentences(self, run, tmp_path, text, sentence):
        (tmp_path / "t.toml").write_text(text)
        code, out, err = run("train", "t.toml")
        assert code == 2
        assert out == ""
        assert sentence in err

    def test_no_file(self, run):
        assert run("train", "none.toml")[2] == "tiltmeter: No file none.toml.\n"


class TestTables:
    TOML = '[data]\nsource = "people.{}"\nlabel = "wage"\ngroup = "sex"\n[model]\nhidden = [4]\n[training]\nlr = 0.1\nsteps = 5\n'

    def test_dropped_rows_are_told_by_group_and_kept_in_the_run(self, run, tmp_path):
        table = people(300)
        table.loc[:99, "age"] = np.nan
        table.to_csv("people.csv", index=False)
        (tmp_path / "t.toml").write_text(self.TOML.format("csv"))
        code, _, err = run("train", "t.toml", "--to", "one")
        assert code == 0, err
        assert "Dropped 100 of 300 rows with missing values (F: " in err
        assert "Labels: <=50K = 0, >50K = 1 (in sorted order; positive= sets which is 1)." in err
        kept = tm.load("one").origin
        assert sum(count for _, count in kept.problem["held_out"]["reading"]["dropped"]) == 100
        assert sum(count for _, count in kept.settings["train"]["reading"]["dropped"]) == 100

    @pytest.mark.parametrize(("declared", "yes"), [("", ">50K"), ('positive = "<=50K"\n', "<=50K")])
    def test_the_positive_label_reaches_the_report(self, run, tmp_path, declared, yes):
        people(300).to_csv("people.csv", index=False)
        text = self.TOML.format("csv").replace('group = "sex"\n', f'group = "sex"\nheld_out = 0.5\n{declared}')
        (tmp_path / "t.toml").write_text(text)
        code, _, err = run("train", "t.toml", "--to", "one")
        assert code == 0, err
        rate = np.mean(people(300)["wage"] == yes)
        rates = tm.load("one").origin.settings["train"]["label_rates"]
        assert np.mean([found[1][1] for _, found in rates]) == pytest.approx(rate, abs=0.1)
        code, out, err = run("report", "one", "--kind", "benefit")
        assert f"Positive label: {yes}." in out.splitlines()
        assert run("report", "one", "--kind", "benefit", "--json")[0] == 0
        page = (tmp_path / "tiltmeter-report.html").read_text()
        assert ("Nobody declared &gt;50K to be the positive label" in page) == (not declared)
        assert f"<span>positive case: wage = {yes.replace('<', '&lt;').replace('>', '&gt;')}</span>" in page

    def test_every_format_trains_alike(self, run, tmp_path):
        table = people(300)
        table.to_csv("people.csv", index=False)
        table.to_parquet("people.parquet")
        table.to_feather("people.feather")
        losses = []
        for ending in ("csv", "parquet", "feather"):
            (tmp_path / "t.toml").write_text(self.TOML.format(ending))
            code, out, err = run("train", "t.toml", "--json")
            assert code == 0, err
            losses.append(json.loads(out)["final"]["loss"]["values"])
        assert losses[0] == losses[1] == losses[2]

    def test_arrays(self, run, tmp_path):
        x = np.random.default_rng(0).normal(size=(200, 3))
        np.savez("people.npz", points=x, wage=(x[:, 0] > 0) * 1, sex=["F", "M"] * 100)
        (tmp_path / "t.toml").write_text(self.TOML.format("npz").replace("[model]", 'columns = ["points"]\n[model]'))
        code, _, err = run("train", "t.toml")
        assert code == 0, err


class TestFollow:
    def write(self, folder, evaluations, pause):
        origin = tm.record.Origin("training")
        with tm.record.Recorder(folder, clock="step", origin=origin) as recorder:
            for step in range(1, evaluations + 1):
                loss = xr.DataArray([1.0 / step, 2.0 / step], dims="group", coords={"group": ["a", "b"]})
                recorder.append(step, {"loss": loss})
                time.sleep(pause)

    def test_a_run_is_followed_until_it_ends(self, tmp_path):
        writer = threading.Thread(target=self.write, args=(tmp_path / "live", 6, 0.1))
        writer.start()
        while not (tmp_path / "live" / "run.json").exists():
            time.sleep(0.01)
        seen = list(growing(tmp_path / "live", pause=0.02))
        writer.join()
        assert seen == sorted(set(seen))
        assert len(seen) > 2
        assert seen[-1] == 6

    def test_a_finished_run_is_shown_once(self, run, tmp_path):
        self.write(tmp_path / "done", 3, 0)
        code, out, _ = run("show", "done", "--follow")
        assert code == 0
        assert out.count("Group b has the higher loss: 0.667 against 0.333.") == 1

    def test_what_is_no_run(self, run):
        code, _, err = run("show", "nowhere", "--follow")
        assert code == 2
        assert "Found nothing at nowhere" in err


def test_compare_needs_runs(run):
    code, _, err = run("compare")
    assert code == 2
    assert "needs at least one run" in err


def test_train_answers_the_forecast_of_its_file(run, tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.choice(["women", "men"], 2000)
    income = rng.normal(np.where(sex == "women", 34, 40), 6)
    repaid = np.where(income - np.where(sex == "women", 34, 40) + rng.normal(0, 3, 2000) > 0, "yes", "no")
    pd.DataFrame({"income": income, "sex": sex, "repaid": repaid}).to_csv(tmp_path / "loans.csv", index=False)
    assert run("init", "loans.csv", "--to", "loans.toml")[0] == 0
    assert run("train", "loans.toml")[1].startswith(("Women ", "Of the women "))
    assert run("forecast", "loans.toml")[0] == 0
    assert (tmp_path / "loans.forecast.json").exists()
    assert run("train", "loans.toml")[1].startswith("The forecast ")
    other = (tmp_path / "loans.toml").read_text().replace("steps = ", "steps = 1")
    (tmp_path / "loans.toml").write_text(other)
    assert not run("train", "loans.toml")[1].startswith("The forecast ")  # it was about other settings
