"""report, gate and show of a table of predictions."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"approved": rng.integers(0, 2, 900), "sex": rng.choice(["F", "M"], 900)})
    frame["race"] = rng.choice(["x", "y"], 900)
    noise = rng.normal(size=900) * np.where(frame.sex == "F", 1.6, 0.4)
    frame["score"] = 1 / (1 + np.exp(-(2 * frame.approved - 1 + noise)))
    frame.to_parquet(tmp_path / "predictions.parquet")
    frame.rename(columns={"score": "p"}).to_csv(tmp_path / "predictions.csv", index=False)
    return frame


COLUMNS = ("--label", "approved", "--group", "sex")


def test_a_report(run, table, tmp_path):
    code, out, err = run("report", "predictions.parquet", "--label", "approved", "--group", "sex", "race")
    assert (code, err) == (0, "")
    assert "F &amp; x" in (tmp_path / "tiltmeter-report.html").read_text()
    code, out, _ = run("report", "predictions.csv", *COLUMNS, "--score", "p", "--kind", "benefit")
    assert code == 0
    assert "Page:" in out


def test_a_gate(run, table):
    code, out, _ = run("gate", "predictions.parquet", *COLUMNS, "--gap", "0.05", "--curve", "error")
    assert code == 1
    assert out.startswith("Fails: the errors of group F and group M are ")
    assert run("gate", "predictions.parquet", *COLUMNS, "--gap", "0.9", "--curve", "error")[0] == 0


def test_show(run, table):
    code, out, _ = run("show", "predictions.parquet", *COLUMNS, "--curve", "error")
    assert code == 0
    assert out.startswith("Group F has the higher error")
    code, out, _ = run("show", "predictions.parquet", *COLUMNS, "--curve", "error", "--json")
    assert json.loads(out)["source"] == "predictions"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "predictions.parquet"), "A table of predictions needs --label COLUMN and --group COLUMN."),
        (("report", "predictions.parquet", "--label", "approved"), "Found no --group for predictions.parquet."),
        (("report", "predictions.parquet", *COLUMNS, "--score", "p"), "`score`: no column 'p'."),
        (("report", "runs/none", *COLUMNS), "--label is for a table of predictions"),
        (("report", "nothing.csv", *COLUMNS), "No file nothing.csv."),
        (("gate", "predictions.csv", *COLUMNS, "--gap", "1"), "`score` or `decision` should name what was predicted"),
    ],
)
def test_bad_input(arguments, words, run, table):
    code, _, err = run(*arguments)
    assert code == 2
    assert words in err
