"""Exports: what other programs read back is what was recorded."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tiltmeter import Trajectory, export, load, predict, save
from tiltmeter.cli import main
from tiltmeter.record import Origin
from tiltmeter.record.labelled import labels_array
from tiltmeter.theory import cases


def run_of(groups=("a", "b"), clock="step", times=(0, 1, 10)):
    values = np.random.default_rng(0).random((len(times), len(groups), 2))
    loss = xr.DataArray(
        values,
        dims=("time", "group", "seed"),
        coords={"time": list(times), "group": labels_array(groups), "seed": [3, 7]},
    )
    return Trajectory({"loss": loss, "risk": loss.mean(("group", "seed"))}, clock, Origin("test", seeds=(3, 7)))


@pytest.mark.parametrize(
    "groups",
    [("a", "b"), (0, 1), (("woman", "old"), ("man", "young")), ("a", 1)],
    ids=["text", "numbers", "tuples", "mixed"],
)
def test_tables_hold_every_value_to_the_last_bit(tmp_path, groups):
    run = run_of(groups)
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    csv = pd.read_csv(export.write(run, tmp_path / "run.csv"))
    parquet = pd.read_parquet(export.write(run, tmp_path / "run.parquet"))
    for table in (csv, parquet):
        assert list(table.columns) == ["curve", "time", "group", "seed", "value"]
        assert len(table) == 12 + 3
        row = table[(table.curve == "loss") & (table.time == 10) & (table.seed == 7)]
        assert row["value"].tolist() == run["loss"].sel(time=10, seed=7).values.tolist()
        assert table[table.curve == "risk"]["group"].isna().all()
    names = parquet["group"].dropna().unique().tolist()
    assert names == {("a", "b"): ["a", "b"], (0, 1): [0, 1], ("a", 1): ["a", "1"]}.get(
        groups, ["woman & old", "man & young"]
    )


def test_parquet_says_what_made_the_run(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    run = run_of()
    about = json.loads(pq.read_schema(export.write(run, tmp_path / "run.parquet")).metadata[b"tiltmeter"])
    assert about["clock"] == "step"
    assert Origin.from_json(about["origin"]) == run.origin


def test_tensorboard_draws_groups_on_one_chart(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    run = run_of((("woman", "a/b"), "b"))
    run = run.replace({**run, "loss": run["loss"].where(run["loss"].time != 1)})
    folder = export.write(run, tmp_path / "board")
    assert sorted(str(path.parent.relative_to(folder)) for path in folder.rglob("events*")) == [
        "all",
        "b/seed=3",
        "b/seed=7",
        "woman & a_b/seed=3",
        "woman & a_b/seed=7",
    ]
    events = EventAccumulator(str(folder / "b" / "seed=7"))
    events.Reload()
    read = {event.step: make_ndarray(event.tensor_proto).item() for event in events.Tensors("loss")}
    expected = run["loss"].sel(seed=7).isel(group=1).dropna("time")
    assert list(read) == [0, 10]
    assert list(read.values()) == pytest.approx(expected.values.tolist())
    with pytest.raises(FileExistsError, match=r"board already exists and is never overwritten. Choose a new name."):
        export.write(run, folder)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "run.txt",
            "should end in one of .csv, .parquet, .tex, .nc, .zarr, or be a folder for TensorBoard. Found 'run",
        ),
        ("none/run.csv", "`path` should lie in an existing directory. Found none at "),
    ],
)
def test_bad_places(tmp_path, name, sentence):
    with pytest.raises((ValueError, FileNotFoundError)) as error:
        export.write(run_of(), tmp_path / name)
    assert sentence in str(error.value)


def test_only_trajectories(tmp_path):
    with pytest.raises(TypeError, match=r"`run` should be a Trajectory, as of a Probe, `train` or `load`. Found dict."):
        export.write({}, tmp_path / "a.csv")


def test_chosen_curves_come_with_their_errors(tmp_path):
    run = run_of()
    names = set(pd.read_csv(export.write(run, tmp_path / "run.csv", curves=["loss"]))["curve"])
    assert names == {name for name in ("loss", "loss_se") if name in run}


def test_tensorboard_counts_whole_steps(tmp_path):
    theory = predict(*cases.centred_crossing(), curves=("loss",))
    with pytest.raises(
        ValueError, match=r"TensorBoard counts whole steps. Found fractions in the times of 'loss' on clock 't'"
    ):
        export.write(theory, tmp_path / "board")
    assert not (tmp_path / "board").exists()


@pytest.mark.parametrize(("name", "needs"), [("a.parquet", "pyarrow"), ("a", "tensorboard")])
def test_a_missing_library_is_named(tmp_path, monkeypatch, name, needs):
    for module in (needs, "pyarrow.parquet", "tensorboard.summary"):
        monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ImportError, match=rf"needs? {needs}: pip install 'tiltmeter\[export\]'."):
        export.write(run_of(), tmp_path / name)


class TestVerb:
    def test_writes_all_kinds(self, tmp_path, monkeypatch, capsys):
        pytest.importorskip("tensorboard", reason="tensorboard is not installed")
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        monkeypatch.chdir(tmp_path)
        save(run_of(), "run")
        assert main(["export", "run", "a.csv", "a.parquet", "board"]) == 0
        assert capsys.readouterr().out == "2 curves, 15 values: a.csv, a.parquet, board\n"
        assert len(pd.read_csv("a.csv")) == 15
        assert main(["export", "run", "a.csv", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"written": ["a.csv"]}
        assert load("run") == run_of()

    def test_nothing_to_write(self, tmp_path, capsys):
        save(run_of(), tmp_path / "run")
        assert main(["export", str(tmp_path / "run")]) == 2
        assert "Nothing to write: name a file, such as run.csv" in capsys.readouterr().err
