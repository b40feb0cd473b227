"""tiltmeter advise: ranks in words, what is not ranked, JSON, and training of the best."""

import json

import numpy as np
import pandas as pd
import pytest

FILE = """
[data]
source = "people.csv"
label = "label"
group = "group"

[model]
hidden = [64]

[training]
lr = 0.1
steps = 30
batch = 32
loss = "logistic"

[evaluations]
per_decade = 3
"""


@pytest.fixture
def config(tmp_path):
    """A shortcut that is right for nine points of ten; groups are those with it and against it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    mark = np.where(rng.random(300) < 0.9, y, 1 - y)
    columns = {"a": 2.0 * (2 * mark - 1) + rng.normal(size=300), "b": (2 * y - 1) + rng.normal(size=300)}
    frame = pd.DataFrame({**columns, "label": y, "group": np.where(mark == y, "with", "against")})
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "t.toml").write_text(FILE)
    return tmp_path / "t.toml"


def test_ranks_and_training_of_the_best(run, config, tmp_path):
    to = tmp_path / "runs"
    code, out, err = run("advise", str(config), "--train", "--method", "twin", "--to", str(to))
    assert code == 0
    assert "judged by the gap in " in out
    assert "SAM" in out
    assert (to / "forecast" / "plain" / "run.json").exists()
    trained = (to / "trained" / "plain" / "run.json").exists()
    assert trained == ("came in at place" in out) == ("Nothing is trained" not in err)
    assert trained == ("forecast (rank)  trained (rank)" in out)


def test_json(run, config):
    code, out, _ = run("advise", str(config), "--budget", "100", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["unranked"] == {}, "every intervention of the menu is tried"
    assert found["rehearsed"]
    assert found["headline"]
    assert {"plain", "SAM", "UPGrad", "SelecMix"} <= {row["run"] for row in found["ranked"]}


def test_a_folder_that_exists_is_refused(run, config, tmp_path):
    code, _, err = run("advise", str(config), "--to", str(tmp_path))
    assert code == 2
    assert "--to should name a new folder" in err


def test_thresholds_by_group_are_trained_and_can_be_added_to_the_file(run, tmp_path):
    """Women earn less and repay as often: thresholds by group help, and need points to be fitted to."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["women", "men"], 3000)
    income = rng.normal(np.where(sex == "women", 34, 40), 6)
    repaid = (income - np.where(sex == "women", 34, 40) + rng.normal(0, 3, 3000) > 0).astype(int)
    pd.DataFrame({"income": income, "repaid": repaid, "sex": sex}).to_csv(tmp_path / "people.csv", index=False)
    asked = FILE.replace('"label"\n', '"repaid"\n').replace('"group"\n', '"sex"\ncolumns = ["income"]\n')
    (tmp_path / "t.toml").write_text(f'{asked}\n[question]\nkind = "benefit"\n')
    code, out, err = run("advise", "t.toml", "--budget", "300")
    assert code == 0, err
    assert out.startswith("Thresholds by group: the gap falls from ")
    command = next(line for line in out.splitlines() if line.startswith("Next: "))
    assert command == "Next: tiltmeter train t.toml --with thresholds-by-group --to runs/changed"
    code, _, err = run(*command.removeprefix("Next: tiltmeter ").split())
    assert code == 0, err
    code, out, err = run("advise", "t.toml", "--budget", "300", "--train", "--to", "kept")
    assert code == 0, err
    assert (tmp_path / "kept" / "trained" / "thresholds-by-group" / "run.json").exists()
