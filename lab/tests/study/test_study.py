"""Studies on the processes of this machine and on executors of the standard library."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cells_for_tests as cells
import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.record.directory.atomic_files import read_sealed_json, write_sealed_json
from tiltmeter_lab.study import Study
from tiltmeter_lab.study.grid import checked_factors
from tiltmeter_lab.study.status import ProgressLine


def begun(log):
    return Path(log).read_text().split() if Path(log).exists() else []


def test_finished_cells_are_never_computed_again_and_the_table_is_labelled(tmp_path):
    log = str(tmp_path / "log")
    study = Study(cells.logged, {"a": [0.5, 1], "log": [log], "pause": [0.0]}, seeds=[3, 5], to=tmp_path / "study")
    assert study.status().left == 4
    pool = ThreadPoolExecutor(1)
    first = study.run(pool, progress=False, only={"a": 0.5})
    assert (first.done, first.left) == (2, 2)
    assert study.run(pool, progress=False).complete
    assert study.run(progress=False, jobs=1).complete
    assert sorted(begun(log)) == ["0.5-3", "0.5-5", "1-3", "1-5"]
    table = study.table().squeeze("log").squeeze("pause")
    assert table["x"].dims == ("a", "seed")
    assert table["y"].dims == ("a", "seed", "k")
    assert table["x"].sel(a=1, seed=5).item() == cells.numbers({"a": 1, "seed": 5})["x"].item()
    again = Study.load(tmp_path / "study")
    assert again.table().identical(study.table())
    assert sorted(os.listdir(tmp_path / "study")) == ["cells", "failed", "study.json", "work"]
    assert os.listdir(tmp_path / "study" / "work") == []
    assert tm.record.check(study.places.result(study.all_cells[0].key)).ok


def test_a_study_as_text(tmp_path):
    study = Study(cells.numbers, {"a": [0.5, 1], "b": [1, 2, 3]}, seeds=2, to=tmp_path)
    grid = f"Study of cells_for_tests:numbers in {tmp_path}: a (2) x b (3), 2 seeds each. "
    assert str(study) == f"{grid}0 of 12 cells done, 0 failed, 12 left."
    given = Study(cells.numbers, cells=[{"a": 1}, {"a": 2}], seeds=None, to=tmp_path)
    assert "2 given settings of a (2). 0 of 2 cells done" in str(given)


def test_progress_is_told_again_only_if_something_changed(capsys):
    line = ProgressLine(3, 0, True)
    for _ in range(3):
        line.tell([{"a": 1}, {"a": 2}, {"a": 3}], 1)
    line.done({"a": 1}, 2.0)
    for _ in range(3):
        line.tell([{"a": 2}, {"a": 3}], 1)
    told = capsys.readouterr().err.splitlines()
    assert [one.split(",")[0] for one in told] == ["0 of 3 cells done", "1 of 3 cells done"]


def test_every_engine_gives_the_same_table_to_the_bit(tmp_path):
    factors = {"a": [0.25, 0.5, 1]}
    studies = [Study(cells.numbers, factors, seeds=2, to=tmp_path / name) for name in ("slots", "threads")]
    studies[0].run(progress=False, jobs=2)
    with ThreadPoolExecutor(2) as pool:
        studies[1].run(pool, progress=False)
    one, two = (study.table() for study in studies)
    assert one["y"].values.tobytes() == two["y"].values.tobytes()
    assert one.identical(two)


def test_failures_are_kept_with_their_traceback_while_the_others_go_on(tmp_path):
    study = Study(cells.fails_at_two, {"a": [1, 2, 3]}, to=tmp_path)
    pool = ThreadPoolExecutor(1)
    assert study.run(pool, progress=False).failed == 1
    (failure,) = study.failures()
    assert failure.error == "RuntimeError: two is bad"
    assert "fails_at_two" in failure.traceback
    assert np.isnan(study.table()["x"].sel(a=2, seed=0))
    path = study.places.failure(study.all_cells[1].key)
    before = path.stat().st_mtime_ns
    assert study.run(pool, progress=False).failed == 1, "failed stays failed"
    assert path.stat().st_mtime_ns == before
    study.run(pool, progress=False, retry_failed=True)
    assert path.stat().st_mtime_ns > before


def test_the_last_reading_of_curves_is_the_default_of_the_table(tmp_path):
    study = Study(cells.curve, {"a": [3, 4]}, seeds=1, to=tmp_path)
    with ThreadPoolExecutor(1) as pool:
        study.run(pool, progress=False)
    assert study.table()["loss"].sel(a=4, group="-", seed=0).item() == 4.0
    first = study.table(lambda run: {"first": run["loss"].isel(time=0).mean().item()})
    assert first["first"].values.tolist() == [[1.5], [1.5]]


@pytest.mark.slow
def test_trouble_of_one_cell_is_its_own(tmp_path, capfd):
    """One raises, one kills its process every time, one hangs; the process of every cell has one thread."""
    log = str(tmp_path / "log")
    kinds = ["none", "raises", "dies", "hangs", "none at all"]
    study = Study(cells.troubled, {"trouble": kinds, "log": [log]}, to=tmp_path / "study", tries=2, limit=1.5)
    status = study.run(progress=False, jobs=1)
    assert (status.done, status.failed, status.left) == (2, 3, 0)
    errors = {failure.settings["trouble"]: failure.error for failure in study.failures()}
    assert errors["raises"] == "RuntimeError: no luck"
    assert "died 2 times" in errors["dies"]
    assert begun(log).count("dies") == 2
    assert errors["hangs"] == "It took longer than the limit of 1.5 s."
    found = study.table().sel(trouble="none").squeeze()
    assert (found["blas"].item(), found["openmp"].item()) == (1, 1)
    assert "standard error" in capfd.readouterr().err
    assert os.listdir(tmp_path / "study" / "work") == []


DRIVER = """
import sys; sys.path.append({folder!r})
from tiltmeter_lab.study import Study
from tiltmeter_lab.study.grid import checked_factors
print(Study.load({place!r}).run(progress=False, jobs={jobs}), flush=True)
"""


def driver(place, jobs=1):
    code = DRIVER.format(folder=str(Path(__file__).parent), place=str(place), jobs=jobs)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)


def written(place, pause, count, log, tries=3):
    """A study that other processes find by its file."""
    study = Study(
        cells.logged,
        {"a": list(range(count)), "log": [str(log)], "pause": [pause]},
        to=place,
        tries=tries,
    )
    study.run(progress=False, jobs=1, only={"a": 0})
    return study


@pytest.mark.slow
def test_two_drivers_at_once_compute_no_cell_twice(tmp_path):
    study = written(tmp_path / "study", 0.02, 30, tmp_path / "log")
    others = [driver(study.to), driver(study.to)]
    for one in others:
        assert "30 of 30 cells done" in one.communicate(timeout=120)[0]
    assert sorted(begun(tmp_path / "log")) == sorted(f"{a}-0" for a in range(30))


def wait_for(condition, seconds=60.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)


@pytest.mark.slow
def test_after_a_killed_driver_its_processes_end_and_the_next_goes_on(tmp_path):
    study = written(tmp_path / "study", 0.3, 5, tmp_path / "log")
    one = driver(study.to)
    wait_for(lambda: len(begun(tmp_path / "log")) >= 3)
    locks = list((study.to / "work").glob("*.lock"))
    worker = json.loads(locks[0].read_text())["pid"]
    one.kill()
    one.wait()
    wait_for(lambda: not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text(), 5)
    done = study.status().done
    assert study.run(progress=False, jobs=1).complete
    counts = [begun(tmp_path / "log").count(f"{a}-0") for a in range(5)]
    assert sum(counts) <= 6, "only the cell in flight was begun twice"
    assert done >= 2
    assert not list((study.to / "work").glob("*.tries")), "a try that ended with its driver does not count"


@pytest.mark.slow
def test_an_interrupt_ends_the_processes_and_keeps_what_is_complete(tmp_path):
    study = written(tmp_path / "study", 1.0, 30, tmp_path / "log")
    timer = threading.Thread(target=interrupt_after, args=(tmp_path / "log", 3), daemon=True)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        study.run(progress=False, jobs=1)
    status = study.status()
    assert status.running == 0
    assert 2 <= status.done < 30
    assert not list((study.to / "work").glob("*.tries"))


def interrupt_after(log, count):
    wait_for(lambda: len(begun(log)) >= count)
    os.kill(os.getpid(), signal.SIGINT)


def test_what_a_kill_after_the_rename_left_is_removed(tmp_path):
    study = Study(cells.numbers, {"a": [0.25, 0.5]}, to=tmp_path / "study")
    with ThreadPoolExecutor(1) as pool:
        study.run(pool, progress=False)
        key = study.all_cells[0].key
        study.places.tries(key).write_text("1")
        study.places.aside(key).mkdir()
        before = study.places.result(key).stat().st_mtime_ns
        study.run(pool, progress=False)
    assert not study.places.tries(key).exists()
    assert not study.places.aside(key).exists()
    assert study.places.result(key).stat().st_mtime_ns == before


def test_a_full_disk_stops_the_study_in_one_sentence(tmp_path):
    import resource

    study = Study(cells.too_large, {"a": [1, 2]}, to=tmp_path / "study")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        with ThreadPoolExecutor(1) as pool, pytest.raises(OSError, match="could not be written: File too large"):
            study.run(pool, progress=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert study.status().failed == 0
    with ThreadPoolExecutor(1) as pool:
        assert study.run(pool, progress=False).complete


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=3m tmpfs {disk} || exit 77
{python} -c '{code}'; echo "exit $?"
mount -o remount,size=60m {disk}
{python} -c '{code}'
"""
FILLS_THE_DISK = """
import cells_for_tests as cells
from tiltmeter_lab.study import Study
from tiltmeter_lab.study.grid import checked_factors
study = Study(cells.too_large, {{"a": list(range(6))}}, to="{disk}/study")
try:
    print(study.run(progress=False, jobs=2), flush=True)
except OSError as error:
    print(error, study.status(), sorted(study.places.keys("cells")), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="a small disk of one's own takes unshare")
def test_a_disk_that_is_full_indeed_stops_the_processes_and_loses_nothing(tmp_path):
    """Six results of 1.6 MB on a disk of 3 MB, which is then made larger."""
    code = FILLS_THE_DISK.format(disk=tmp_path).replace("'", '"')
    script = ON_A_SMALL_DISK.format(disk=tmp_path, python=sys.executable, code=code)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(Path(__file__).parent)])}
    found = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script], env=environment, capture_output=True, text=True, timeout=280
    )
    if found.returncode in (1, 77) and "exit" not in found.stdout:
        pytest.skip("this machine does not let us mount")
    first, code, second = found.stdout.splitlines()
    assert "The study stopped." in first
    assert "No space left on device" in first
    assert "1 of 6 cells done, 0 failed, 5 left." in first
    assert code == "exit 0", "in one sentence, without a traceback"
    assert second == "6 of 6 cells done, 0 failed, 0 left."


def test_a_fraction_is_the_same_everywhere_and_grows(tmp_path):
    factors = {"a": list(range(10)), "b": list(range(10))}
    small, large = (
        {cell.key for cell in Study(cells.numbers, factors, to=tmp_path, fraction=part).all_cells}
        for part in (0.2, 0.5)
    )
    assert (len(small), len(large)) == (20, 50)
    assert small < large


def test_an_explicit_list_of_cells(tmp_path):
    study = Study(cells.numbers, cells=[{"a": 1, "kind": "x"}, {"a": 2, "kind": "y"}], to=tmp_path)
    with ThreadPoolExecutor(1) as pool:
        study.run(pool, progress=False)
    x = study.table()["x"]
    assert dict(x.sizes) == {"a": 2, "kind": 2, "seed": 1}
    assert np.isnan(x.sel(a=1, kind="y").item())
    assert np.isfinite(x.sel(a=2, kind="y").item())


def test_cells_of_other_code_are_counted(tmp_path):
    study = Study(cells.numbers, {"a": [1, 2]}, to=tmp_path)
    with ThreadPoolExecutor(1) as pool:
        study.run(pool, progress=False)
    assert study.status().other_code == 0
    path = study.places.result(study.all_cells[0].key) / "cell.json"
    write_sealed_json(path, {**read_sealed_json(path, "a cell"), "fingerprint": "old"})
    assert study.status().other_code == 1
    assert "1 were made by another version" in str(study.status())
    other = Study(cells.numbers, {"a": [1]}, to=tmp_path)
    assert other.status().strangers == 1


SENTENCES = [
    (lambda: Study(cells.numbers), "takes `factors`, or an explicit list of `cells`"),
    (lambda: Study(lambda settings: None, {"a": [1]}), "`cell` should be a function at the top level of a module"),
    (lambda: Study("text", {"a": [1]}), "`cell` should be a function. Found str"),
    (lambda: Study(cells.numbers, {"a": []}), "should be a list of at least one value. Found a = "),
    (lambda: Study(cells.numbers, {"a": [1, 1]}), "Found 1 twice in `a`"),
    (lambda: Study(cells.numbers, {"seed": [1]}), "a word other than `seed`"),
    (lambda: Study(cells.numbers, {"a": [float("nan")]}), "should be plain JSON"),
    (lambda: Study(cells.numbers, {"a": [1]}, seeds=0), "`seeds` should lie between 1 and 100,000,000"),
    (
        lambda: Study(cells.numbers, {"a": [1]}, seeds=[1, 1]),
        "a list of different whole numbers from 0. Found seeds = ",
    ),
    (lambda: Study(cells.numbers, {"a": [1]}, fraction=0.0), "`fraction` should lie above 0"),
    (lambda: Study(cells.numbers, {"a": [1]}, tries=0), "`tries` should be a whole number of at least 1"),
    (lambda: Study(cells.numbers, {"a": [1]}, limit=-1), "`limit` should be a positive number of seconds"),
    (lambda: Study(cells.numbers, cells=[{"a": 1}, {"b": 1}]), "Every cell should set a, b and no more"),
    (lambda: Study(cells.numbers, {"a": [1]}).run(3), "`executor` should be None"),
    (lambda: Study(cells.numbers, {"a": [1]}).run(only={"b": 1}), "`only` should name factors"),
    (lambda: Study(cells.numbers, {"a": [1]}).run(jobs=0), "`jobs` should be a number of processes"),
    (lambda: Study(cells.numbers, {"a": [1]}, limit=1).run(ThreadPoolExecutor(1)), "`limit` is kept by executor=None"),
    (lambda: Study.load("nowhere"), "should be the folder of a study"),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES)
def test_bad_input_is_refused_in_one_sentence(call, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError, KeyError, OSError)) as error:
        call()
    assert sentence in str(error.value)


def test_a_folder_belongs_to_one_function(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        Study(cells.numbers, {"a": [1]}, to=tmp_path).run(pool, progress=False)
        with pytest.raises(ValueError, match="holds a study of cells_for_tests:numbers"):
            Study(cells.curve, {"a": [1]}, to=tmp_path).run(pool, progress=False)
        wrong = Study(cells.returns_text, {"a": [1]}, to=tmp_path / "wrong")
        wrong.run(pool, progress=False)
    assert "should return a Trajectory or an xarray.Dataset. Found str." in wrong.failures()[0].error


def test_a_factor_may_be_an_array():
    assert checked_factors({"lr": np.array([0.5, 1.0])}) == {"lr": [0.5, 1.0]}
    with pytest.raises(TypeError, match="at least one value"):
        checked_factors({"lr": np.array([])})
