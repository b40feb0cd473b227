"""Trackers: what the real programs read back is what was recorded, all of it offline."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Trajectory, export
from tiltmeter.record import Origin
from tiltmeter.record.labelled import labels_array

GROUPS = ("a", "b: c", ("woman", "old"))


def run_of(groups=GROUPS, times=(0, 10, 100)):
    values = np.random.default_rng(0).random((len(times), len(groups)))
    values[1, 0] = np.nan
    loss = xr.DataArray(values, dims=("time", "group"), coords={"time": list(times), "group": labels_array(groups)})
    return Trajectory({"loss": loss, "norm": loss.mean("group").isel(time=[0, 2])}, "step", Origin("test"))


def expected(safe=str):
    """What a tracker should hold: name -> {step: value}, by a second route."""
    run = run_of()
    names = {"a": "loss/a", "b: c": "loss/b: c", ("woman", "old"): "loss/woman & old"}
    found = {
        safe(name): {
            int(t): float(v) for t, v in zip((0, 10, 100), run["loss"].values[:, i], strict=True) if np.isfinite(v)
        }
        for i, name in enumerate(names.values())
    }
    found["norm"] = dict(zip((0, 100), map(float, run["norm"].values), strict=True))
    return found


def collected():
    seen = {}

    class Target:
        def log(self, values, step):
            for name, value in values.items():
                seen.setdefault(name, {})[step] = value

    return seen, Target()


def test_every_value_once_in_the_order_of_steps():
    seen, tracker = collected()
    assert export.track(run_of(), tracker) == 100
    assert seen == expected()
    steps = []
    export.track(run_of(), lambda values, step: steps.append(step))
    assert steps == [0, 10, 100]


def test_only_what_is_new():
    seen, tracker = collected()
    assert export.track(run_of(), tracker, after=10) == 100
    assert {step for line in seen.values() for step in line} == {100}
    assert export.track(run_of(), tracker, after=100) is None


def test_names_that_would_be_equal_stay_apart():
    seen = {}

    class Client:
        def log_metric(self, run_id, name, value, step):  # noqa: ARG002
            seen.setdefault(name, {})[step] = value

    export.track(run_of(("a?", "a!", "a_")), (Client(), "1"))
    assert sorted(seen) == ["loss/a_", "loss/a__2", "loss/a__3", "norm"]


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: export.track(run_of(), 3), TypeError, "`to` should be what wandb.init or trackio.init returns, an aim.Run, a SummaryWriter, (MlflowClient(), run_id) or a function of values and step. Found int."),
        (lambda: export.track(run_of(), (3, "1")), TypeError, "Found tuple."),
        (lambda: export.track({}, print), TypeError, "`run` should be a Trajectory, as of a Probe, `train` or `load`. Found dict."),
        (lambda: export.track(run_of(times=(0.5, 1, 2)), print), ValueError, "A tracker counts whole steps. Found fractions in the times of 'loss'"),
    ],
)  # fmt: skip
def test_sentences(call, kind, sentence):
    with pytest.raises(kind) as error:
        call()
    assert sentence in str(error.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install -r requirements/trackers.txt")
    monkeypatch.chdir(tmp_path)
    with wandb.init(mode="offline", project="test", dir=str(tmp_path), settings=wandb.Settings(silent=True)) as run:
        export.track(run_of(), run)
        run.log({}, commit=True)  # W&B holds a step back until the next one
        assert {name: run.summary[name] for name in expected()} == {
            name: line[100] for name, line in expected().items()
        }
    wandb.teardown()  # W&B's own process writes the rest of its file when it ends
    (written,) = {path.resolve() for path in tmp_path.rglob("*.wandb")}  # to be sent with `wandb sync`
    assert wandb_history(written.read_bytes()) == expected()


def wandb_history(log):
    """The numbers in W&B's own file: records in blocks of 32 KiB, each part with checksum, length and kind."""
    import json

    from wandb.proto.wandb_internal_pb2 import Record

    assert log[:4] == b":W&B"
    place, whole, rows = 7, b"", []
    while place < len(log):
        left = 32768 - place % 32768
        if left < 7:  # too small for a header: padded
            place += left
            continue
        length, kind = int.from_bytes(log[place + 4 : place + 6], "little"), log[place + 6]
        whole += log[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            record = Record.FromString(whole)
            if record.HasField("history"):
                rows.append(
                    {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
                )
            whole = b""
    found = {}
    for row in rows:
        for name in row.keys() & expected().keys():
            found.setdefault(name, {})[row["_step"]] = row[name]
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_offline(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install -r requirements/trackers.txt")
    from tiltmeter.export.trackers import plain_name

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "store").as_uri())
    run = client.create_run(client.create_experiment("test"))
    export.track(run_of(), (client, run.info.run_id))
    for name, line in expected(plain_name).items():
        history = client.get_metric_history(run.info.run_id, name)
        assert {point.step: point.value for point in history} == line


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tensorboard(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="no tensorboard")
    from tensorboard.summary import Writer

    from tiltmeter.export.trackers import plain_name

    writer = Writer(str(tmp_path))
    export.track(run_of(), writer)
    writer.close()
    reader = events.EventAccumulator(str(tmp_path), size_guidance={"tensors": 0})
    reader.Reload()
    for name, line in expected(plain_name).items():
        found = {event.step: float(event.tensor_proto.float_val[0]) for event in reader.Tensors(name)}
        assert found == pytest.approx(line, rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_trackio_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    trackio = pytest.importorskip(
        "trackio",
        reason="trackio is not installed: it needs an environment of its own, requirements/trackers-apart.txt",
    )
    run = trackio.init(project="test", name="one")
    export.track(run_of(), run)
    trackio.finish()
    logs = trackio.sqlite_storage.SQLiteStorage.get_logs("test", "one")
    found = {}
    for row in logs:
        for name in row.keys() & expected().keys():
            found.setdefault(name, {})[row["step"]] = row[name]
    assert found == expected()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_aim_offline(tmp_path):
    aim = pytest.importorskip(
        "aim", reason="aim is not installed: it needs an environment of its own, requirements/trackers-apart.txt"
    )
    run = aim.Run(repo=str(tmp_path), system_tracking_interval=None, capture_terminal_logs=False)
    export.track(run_of(), run)
    found = {}
    for metric in run.metrics():
        steps, (values, *_) = metric.data.items_list()
        found[metric.name] = dict(zip(steps, values, strict=True))
    run.close()
    assert found == expected()
