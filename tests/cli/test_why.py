"""`show --why`: the statistics below the answer; and tables that cut no word on 80 columns."""

import numpy as np
import pytest
import torch

import tiltmeter as tm

RACES = ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten groups by two attributes with long names, and two groups of which one is missed."""
    place, rng = tmp_path_factory.mktemp("runs"), np.random.default_rng(0)
    x = rng.normal(size=(3000, 3)).astype("float32")
    women = rng.random(3000) < 0.5
    y = (x[:, 0] + 0.5 * rng.normal(size=3000) > 0).astype(int)
    x[:, 0] -= women
    sex = np.where(women, "women", "men")
    races = rng.choice(np.array(RACES, dtype=object), 3000)
    both = np.empty(3000, dtype=object)
    both[:] = [*zip(sex, races, strict=True)]
    for name, group in (("two", sex), ("ten", both)):
        torch.manual_seed(0)
        run = tm.train(
            torch.nn.Linear(3, 1), *tm.GroupedData(x, y, group).split(0.5), tm.Recipe(lr=0.5, steps=40, batch=32)
        )
        tm.save(run, place / name)
    return place


def test_every_difference_has_its_limits_only_when_asked(folder, run):
    answer = run("show", str(folder / "two"))[1]
    why = run("show", str(folder / "two"), "--why")[1]
    rows = tm.leaders(tm.load(folder / "two")).to_frame().set_index("curve")
    assert why.startswith(answer.split("\n")[0])
    assert "men minus women" not in answer
    assert why.count("men minus women") == len(rows)
    low, high = (f"{100 * abs(rows.loc['tpr', name]):.1f}" for name in ("low", "high"))
    assert f"{low} to {high}" in why
    assert "at most 5 of 100 have any clear difference." in why


@pytest.mark.parametrize("flags", [(), ("--why",)])
def test_80_columns_cut_no_word(folder, run, monkeypatch, flags):
    monkeypatch.setenv("COLUMNS", "80")
    out = run("show", str(folder / "ten"), *flags)[1]
    table = [line for line in out.splitlines() if line.startswith(" ")]
    assert max(map(len, table)) <= 80
    assert "…" not in out
    for race in RACES:
        assert any(race in line for line in table)
