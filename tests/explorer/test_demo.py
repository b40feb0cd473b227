"""What `make explore` opens: runs, a study, a forecast and a file to bend, made once."""

from pathlib import Path

import pytest

from tiltmeter.explorer.demo_runs import demo_runs
from tiltmeter.explorer.nowcasts import run_nowcasts
from tiltmeter.explorer.run_rows import run_rows
from tiltmeter.explorer.what_if_sources import what_if_sources


def test_make_explore_opens_the_demo():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert "explore: .venv/run.stamp" in makefile
    assert "tiltmeter explore runs --demo" in makefile


@pytest.mark.slow
def test_the_demo_has_something_for_every_page(tmp_path):
    pytest.importorskip("torch")
    made = demo_runs(tmp_path)
    assert made[-1] == "digits-seed-2"
    rows = run_rows(str(tmp_path))["rows"]
    shown = {row["run"]: row["state"] for row in rows if not row.get("cell")}
    assert set(shown.values()) == {"finished"}
    assert {"demo/theory-three-phases", "demo/digits-forecast", "demo/digits-seed-0"} <= set(shown)
    assert max(rows, key=lambda row: row["changed"])["run"] == "demo/digits-seed-2"  # what the runs page shows first
    studies = pytest.importorskip("tiltmeter_lab.study.page_answers")
    assert studies.study_rows(str(tmp_path))[0]["status"] == "45 of 45 cells done, 0 failed, 0 left."
    kinds = [one["kind"] for one in what_if_sources(str(tmp_path))]
    assert kinds == ["digits", "file", "saved", "saved"]
    ahead = run_nowcasts(str(tmp_path), [*shown], "loss")
    assert {run: one["name"] for run, one in ahead.items()} == {"demo/digits-begun": "demo/digits-nowcast"}
    assert demo_runs(tmp_path) == []
