"""Power cuts while a study writes: every complete cell is whole, and the study goes on to the same table."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import cells_for_tests as cells
import numpy as np
import pytest

import power_cuts
from tiltmeter_lab.study import Study

FACTORS = {"a": [0.25, 0.5, 1]}


def run(folder):
    study = Study(cells.numbers, FACTORS, seeds=2, to=folder / "study", tries=5)
    with ThreadPoolExecutor(1) as pool:
        status = study.run(pool, progress=False)
    assert status.complete, status
    return study.table()


def cut(tmp_path, count, seed):
    (tmp_path / "recorded").mkdir()
    (tmp_path / "first").mkdir()
    whole = run(tmp_path / "first")
    with power_cuts.recorded(tmp_path / "recorded") as recording:
        assert run(tmp_path / "recorded").identical(whole)
    power_cuts.after_power_cut(recording, len(recording.calls), tmp_path / "replayed", None)
    assert power_cuts.tree(tmp_path / "replayed") == power_cuts.tree(tmp_path / "recorded")
    random, ends = np.random.default_rng(seed), {"identical": 0, "refused": 0}
    for number in range(count):
        target = tmp_path / f"cut{number}"
        power_cuts.after_power_cut(recording, int(random.integers(1, len(recording.calls) + 1)), target, random)
        try:
            assert run(target).identical(whole)
            ends["identical"] += 1
        except (ValueError, OSError) as error:
            print(error)
            ends["refused"] += 1
        shutil.rmtree(target)
    print(f"\nstudy: {ends} of {len(recording.calls)} calls")
    return ends


def test_some_power_cuts(tmp_path):
    assert cut(tmp_path, 8, seed=1)["identical"] >= 7


@pytest.mark.slow
def test_sixty_power_cuts(tmp_path):
    assert cut(tmp_path, 60, seed=2)["identical"] >= 56
