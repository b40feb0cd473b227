"""The calibration of promises: tasks drawn beforehand, scores that grow with the distance, a table that is kept."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")

from tiltmeter_lab.calibrate_twins import KINDS, NUMBERS, PROMISES, calibrate, draw_task, factor, table


def test_tasks_are_drawn_beforehand_and_cover_every_kind():
    drawn = [draw_task(number) for number in NUMBERS]
    assert drawn == [draw_task(number) for number in NUMBERS]
    assert len(drawn) >= 40
    assert {task.kind for task in drawn} == set(KINDS)
    sizes = [task.held_out for task in drawn]
    assert min(sizes) < 300
    assert max(sizes) > 3000


def test_every_kind_of_network_is_calibrated_and_rows_are_kept(tmp_path):
    numbers = list(NUMBERS)[: len(KINDS)]
    rows = list(calibrate(tmp_path, numbers, steps=6))
    assert [row["kind"] for row in rows] == list(KINDS)
    assert all(np.isfinite(row["scores"][name]) for row in rows for name in PROMISES)
    before = (tmp_path / f"{numbers[0]}.json").read_text()
    assert list(calibrate(tmp_path, numbers, steps=6)) == rows
    assert (tmp_path / f"{numbers[0]}.json").read_text() == before
    assert set(json.loads(json.dumps(table(rows)))["factors"]) == set(PROMISES)


def test_the_factor_is_that_of_one_more_task():
    assert factor(list(range(1, 20))) == 18
    assert factor([1.0, 2.0]) == np.inf
