"""Runs of a folder: what is listed, what is refused, how fast, and what is kept when evaluations are left out."""

import importlib.util
import json
import os
import shutil
import time
from pathlib import Path
from urllib.parse import quote, urlencode

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.explorer.run_curves import ALL, downsample, run_curves
from tiltmeter.explorer.run_judgement import run_judgement, run_summaries
from tiltmeter.explorer.run_rows import MOST_BYTES, address_of, refusal, run_folder, run_rows, runs_alike
from tiltmeter.record.directory.reader import RunReader

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made_runs.py"))
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)
write, day, hostile_folder, HOSTILE = _made.write, _made.day, _made.hostile_folder, _made.HOSTILE


def names(root):
    return sorted(row["run"] for row in run_rows(str(root))["rows"])


def test_runs_are_found_at_any_depth_and_nothing_else(tmp_path):
    write(tmp_path / "one")
    write(tmp_path / "sweep" / "lr=0.1" / "seed 3")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("x")
    assert names(tmp_path) == ["one", "sweep/lr=0.1/seed 3"]
    assert names(tmp_path / "nowhere") == []


def test_links_out_of_the_folder_are_left_out(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root / "mine")
    write(outside / "secret")
    (root / "link").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "circle").symlink_to(root)
    (root / "inside").symlink_to(root / "mine")
    assert names(root) == ["inside", "mine"]


@pytest.mark.parametrize("name", ["curves.jsonl", "run.json", "arrays", "points"])
def test_files_that_are_links_out_are_not_read(tmp_path, name):
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(outside)
    write(root / "mine")
    if (root / "mine" / name).exists():
        (root / "mine" / name).unlink()
    (outside / name).mkdir(exist_ok=True) if not (outside / name).exists() else None
    (root / "mine" / name).symlink_to(outside / name)
    sentence = f"{name} is a link that leads out of the folder, so it is not followed."
    assert refusal(root, root / "mine") == sentence
    assert run_curves(str(root), ["mine"], "loss", {})["mine"] == {"error": sentence}
    with pytest.raises(ValueError, match="leads out of the folder"):
        run_judgement(str(root), ["mine"], "loss")


def test_an_array_that_is_a_link_out_is_not_read(tmp_path):
    write(tmp_path / "root" / "mine")
    (tmp_path / "root" / "mine" / "arrays").mkdir()
    (tmp_path / "root" / "mine" / "arrays" / "a.npy").symlink_to("/etc/passwd")
    assert (
        refusal(tmp_path / "root", tmp_path / "root" / "mine")
        == "arrays holds a link that leads out of the folder, so it is not followed."
    )


def test_an_oversized_run_is_refused(tmp_path):
    write(tmp_path / "large")
    with (tmp_path / "large" / "curves.jsonl").open("r+b") as file:
        file.truncate(MOST_BYTES + 1)  # sparse: takes no space
    assert "larger than 512 MB" in run_curves(str(tmp_path), ["large"], "loss", {})["large"]["error"]


def test_damage_is_a_sentence_without_the_path(tmp_path):
    write(tmp_path / "bad")
    lines = (tmp_path / "bad" / "curves.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "bad" / "curves.jsonl").write_bytes(lines[0] + b"not json\n" + b"".join(lines[1:]))
    error = run_curves(str(tmp_path), ["bad"], "loss", {})["bad"]["error"]
    assert "line 2" in error
    assert str(tmp_path) not in error
    assert run_summaries(str(tmp_path), ["bad"])["bad"]["leader"] == "not judged"


def test_a_torn_line_waits(tmp_path):
    write(tmp_path / "torn", evaluations=3)
    (tmp_path / "torn" / "end.json").unlink()
    with (tmp_path / "torn" / "curves.jsonl").open("ab") as file:
        file.write(b'{"kind":"evaluation","time":4,"val')
    assert run_curves(str(tmp_path), ["torn"], "loss", {})["torn"]["evaluations"] == 3


def test_a_run_that_grows_is_read_on_and_one_that_goes_is_said_to_be_gone(tmp_path):
    recorder = write(tmp_path / "live", evaluations=2, end=False)
    first = run_curves(str(tmp_path), ["live"], "loss", {})["live"]
    assert first["times"] == [1.0, 2.0]
    assert first["state"] == "running"
    assert run_curves(str(tmp_path), ["live"], "loss", {"live": first["version"]})["live"] == {
        "version": first["version"],
        "same": True,
    }
    recorder.append(3, {"loss": xr.DataArray([0.1, 0.2], dims="group", coords={"group": ["a", "b"]})})
    recorder.close()
    second = run_curves(str(tmp_path), ["live"], "loss", {"live": first["version"]})["live"]
    assert second["times"] == [1.0, 2.0, 3.0]
    assert second["values"][-1] == [0.1, 0.2]
    assert second["state"] == "finished"
    shutil.rmtree(tmp_path / "live")
    assert run_curves(str(tmp_path), ["live"], "loss", {})["live"] == {"error": "This run is no longer there."}


def test_a_replaced_run_is_read_from_its_beginning(tmp_path):
    write(tmp_path / "again", evaluations=4)
    follow = RunReader(tmp_path / "again")
    assert follow.update()
    shutil.rmtree(tmp_path / "again")
    write(tmp_path / "again", evaluations=6, seed=1)
    assert follow.update()
    assert follow.trajectory["loss"].sizes["time"] == follow.evaluations == 6


def test_seeds_are_found_by_equal_settings(tmp_path):
    for seed in range(3):
        write(tmp_path / f"s{seed}", seed=seed)
    write(tmp_path / "other", lr=0.2)
    assert sorted(runs_alike(str(tmp_path), "s0")) == ["s0", "s1", "s2"]
    together = run_judgement(str(tmp_path), ["s0", "s1", "s2"], "loss")
    assert together["evaluations"] == 5
    assert together["sentence"]


def test_judgement_is_that_of_the_library(tmp_path):
    tm.save(tm.predict(*tm.theory.cases.centred_crossing()), tmp_path / "theory")
    told = run_judgement(str(tmp_path), ["theory"], "loss")
    assert (
        told["sentence"]
        == "Group - has the lower loss until t = 5.643 (larger variance), then group + (more data).\nExact theory."
    )
    assert told["crossings"][0]["time"] == pytest.approx(5.643, abs=1e-3)
    assert [rule["rule"] for rule in told["stopping"]] == ["smallest gap", "best mean", "best worst group"]
    assert told["stopping_note"] == "Among the evaluations whose mean loss is within 10 % of the best."
    assert run_summaries(str(tmp_path), ["theory"])["theory"]["leader"] == "+"


@pytest.mark.parametrize("evaluations", [30_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_run_keeps_its_extremes_and_crosses_where_it_crosses(tmp_path, evaluations):
    steps, values = day(tmp_path / "day", evaluations)
    told = run_curves(str(tmp_path), ["day"], "loss", {})["day"]
    assert told["evaluations"] == evaluations
    assert told["all_evaluations"] is False
    assert len(told["times"]) < 2000
    shown = np.array(told["values"])[1:]

    def crossed(times, curves):
        gap = curves[:, 0] - curves[:, 1]
        i = np.flatnonzero(gap[1:] * gap[:-1] < 0)
        return times[i] + gap[i] / (gap[i] - gap[i + 1]) * (times[i + 1] - times[i])

    np.testing.assert_array_equal(crossed(np.array(told["times"])[1:], shown), crossed(steps.astype(float), values))
    assert shown.max(0).tolist() == values.max(0).tolist()
    assert shown.min(0).tolist() == values.min(0).tolist()


def test_downsampling_keeps_every_spike_and_all_of_a_short_run():
    rng = np.random.default_rng(0)
    times, values = np.arange(50_000.0), rng.normal(size=(50_000, 3)) * 1e-3 + np.array([0.0, 1.0, 2.0])
    values[31_415, 1] = 9.0
    kept = downsample(times, values)
    assert 31_415 in kept
    assert np.array_equal(downsample(times[:ALL], values[:ALL]), np.arange(ALL))
    values[100:200] = np.nan
    assert len(downsample(times, values)) < 4000


def test_thousands_of_runs_are_listed(tmp_path):
    write(tmp_path / "r0")
    for i in range(1, 300):
        shutil.copytree(tmp_path / "r0", tmp_path / f"r{i}")
    run_rows(str(tmp_path))
    begun = time.process_time()
    told = run_rows(str(tmp_path))
    spent = time.process_time() - begun
    assert len(told["rows"]) == 300
    assert spent < 2.0  # measured: 0.02 s; the goal of 1 s for 2,000 is in benchmarks/explorer.py
    assert "rows" not in run_rows(str(tmp_path), told["version"])


def test_hostile_names_are_text(tmp_path):
    root = hostile_folder(tmp_path / "root")
    rows = run_rows(str(root))["rows"]
    assert len(rows) == len(HOSTILE) >= 30
    for row in rows:
        json.dumps(row).encode()
        told = run_curves(str(root), [row["run"]], "loss", {})[row["run"]]
        assert told["groups"][1] == "b"
    assert address_of(b"../../etc/passwd").startswith("~")


@pytest.mark.parametrize("run", ["../../etc", "/etc", "..%2f..%2fetc", "~0000000000000000", "", "\x00", "a/../../b"])
def test_a_name_that_is_not_in_the_folder_is_nowhere(explorer, run):
    told = explorer.json("/api/curves?" + urlencode({"run": run, "curve": "loss"}))
    assert told == {run: {"error": "This run is no longer there."}}
    assert explorer.ask(f"/report?run={quote(run)}").status == 400


def test_the_folder_itself_may_be_a_run(tmp_path):
    write(tmp_path / "one")
    found = run_folder(tmp_path / "one", age=0.0)
    assert list(found.values()) == [(tmp_path / "one").resolve()]
    assert run_rows(str(tmp_path / "one"))["rows"][0]["name"] == "one"


def test_nothing_is_unpickled():
    source = Path(tm.__file__).parent / "explorer"
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text
        assert "torch.load" not in text
        assert "allow_pickle" not in text
    assert os.path.isdir(source / "page")


def test_a_lead_that_is_no_longer_shown_does_not_lead_now(tmp_path):
    times = np.arange(1.0, 9.0)
    values = np.stack([np.where(times < 5, 0.1, 0.5), np.full(8, 0.5)], 1)
    coords = {"time": times, "group": ["a", "b"]}
    loss = xr.DataArray(values, dims=("time", "group"), coords=coords)
    tm.save(
        tm.Trajectory({"loss": loss, "loss_se": 0 * loss + 0.01}, "step", tm.record.Origin("example")), tmp_path / "run"
    )
    told = run_judgement(str(tmp_path), ["run"], "loss")["sentence"]
    assert "During training group b was worse off, from step 1 to 4; at the end no difference is clear." in told
    assert run_summaries(str(tmp_path), ["run"])["run"] == {"leader": "not clear", "crossing": None}
