"""Studies in the explorer: the same numbers as `Study`, and no function is imported because a file names it."""

import sys

import pytest

import tiltmeter_lab as lab
from tiltmeter.record.directory.atomic_files import write_sealed_json
from tiltmeter_lab.study import page_answers as numbers
from tiltmeter_lab.study.example_cell import final_gap
from tiltmeter_lab.study.page_answers import study_answers, study_folder, study_rows, study_shares


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studied")
    study = lab.Study(final_gap, {"rho": [0.6, 0.9], "lr": [0.1, 0.2]}, seeds=2, to=folder / "deep" / "gaps")
    study.run(progress=False, jobs=1, only={"rho": 0.9})
    whole = lab.Study(final_gap, {"rho": [0.6, 0.9], "lr": [0.1]}, seeds=2, to=folder / "whole")
    whole.run(progress=False, jobs=1)
    return folder


def asked(root, **settings):
    return study_answers(str(root), **{"study": "deep/gaps", "across": "", "up": "", "response": "", **settings})


def test_a_study_stands_as_the_library_says(root):
    study = lab.Study.load(root / "deep" / "gaps")
    rows = study_rows(str(root))
    assert [(row["study"], row["status"]) for row in rows] == [
        ("deep/gaps", "4 of 8 cells done, 0 failed, 4 left."),
        ("whole", "4 of 4 cells done, 0 failed, 0 left."),
    ]
    told = asked(root)
    assert told["status"] == {**study.status().to_json(), "other_code": 0}
    assert told["axes"] == ["rho", "lr"]
    assert told["response"] == "gap"
    expected = study.table()["gap"].mean("seed")
    for square in told["squares"]:
        i, j = square["at"]
        value = expected.values[i, j]
        assert square["value"] == (pytest.approx(value) if value == value else None)
        assert square["states"] == ({"done": 2} if i == 1 else {"left": 2})
        assert len(square["runs"]) == (2 if i == 1 else 0)
    assert asked(root, across="lr", up="lr")["axes"] == ["lr", "rho"]
    assert asked(root)["version"] == told["version"]


def test_shares_are_those_of_the_library(root):
    table = lab.Study.load(root / "whole").table()
    found = study_shares(str(root), "whole", "gap")
    expected = lab.shares(table["gap"], draws=200, permutations=99)
    assert [row["term"] for row in found["rows"]] == [row.term for row in expected.rows]
    assert [row["share"] for row in found["rows"]] == [row.share for row in expected.rows]
    with pytest.raises(ValueError, match="There is no such number in this study"):
        study_shares(str(root), "deep/gaps", "loss")
    with pytest.raises(ValueError, match="This study is no longer there"):
        study_shares(str(root), "../gaps", "gap")


def test_a_large_study_is_read_in_parts(root, monkeypatch):
    numbers._read.clear()
    monkeypatch.setattr(numbers, "PATIENCE", -1.0)
    assert asked(root)["reading"] == "0 of 4 complete cells read so far"
    monkeypatch.setattr(numbers, "PATIENCE", 60.0)
    assert asked(root)["reading"] is None


def written(folder, **changes):
    said = {
        "format": 1, "cell": {"module": "this_is_never_imported", "name": "run", "folder": str(folder)},
        "version": "1", "factors": {"a": [1, 2]}, "cells": None, "fraction": None, "seeds": 2, "tries": 1, "limit": None,
    }  # fmt: skip
    folder.mkdir(parents=True)
    write_sealed_json(folder / "study.json", {**said, **changes})


def test_the_function_that_a_file_names_is_not_imported(tmp_path):
    written(tmp_path / "sent")
    (tmp_path / "sent" / "this_is_never_imported.py").write_text("raise SystemExit")
    assert study_rows(str(tmp_path))[0]["status"] == "0 of 4 cells done, 0 failed, 4 left."
    told = study_answers(str(tmp_path), "sent", "", "", "")
    assert told["response"] is None
    assert "this_is_never_imported" not in sys.modules


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"seeds": 10**12}, "This study has 1,000,000,000,000 seeds"),
        ({"factors": {f"f{i}": list(range(40)) for i in range(5)}}, "This study has 204,800,000 cells"),
        ({"factors": "x"}, "`factors` should map names to lists of values"),
        ({"format": 99}, "newer tiltmeter"),
    ],
)
def test_a_strange_study_is_a_sentence(tmp_path, changes, sentence):
    written(tmp_path / "sent", **changes)
    error = study_rows(str(tmp_path))[0]["error"]
    assert sentence in error
    assert str(tmp_path) not in error


def test_links_out_of_the_folder_are_not_followed(root, tmp_path):
    (tmp_path / "link").symlink_to(root / "deep")
    assert study_folder(tmp_path) == {}
    written(tmp_path / "mine")
    (tmp_path / "mine" / "cells").symlink_to(root / "deep" / "gaps" / "cells")
    assert numbers._numbers(tmp_path, next((tmp_path / "mine" / "cells").iterdir())) == {}
