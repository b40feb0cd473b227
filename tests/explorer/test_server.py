"""The server: what it answers, and how it ends."""

import contextlib
import http.client
import json
import signal
import threading
import time
from urllib.parse import urlencode

import pytest

import tiltmeter as tm
from tiltmeter.cli import main
from tiltmeter.explorer.theory_state import TheoryState, presets
from tiltmeter.explorer.worker_process import finite
from tiltmeter.theory import cases


def test_the_start_tells_the_presets(explorer):
    told = explorer.json("/api/start")
    assert told["version"] == tm.__version__
    assert told["allow_runs"] is False
    assert [one["name"] for one in told["presets"]] == [
        "centred crossing",
        "three phases",
        "spurious correlation",
        "no crossing",
        "no bias",
    ]


@pytest.mark.parametrize("name", ["centred_crossing", "three_phases", "spurious_correlation", "no_crossing", "no_bias"])
def test_a_preset_is_its_case(name):
    state = next(one["state"] for one in presets() if one["name"] == name.replace("_", " "))
    query = {
        key: ",".join(map(repr, value)) if isinstance(value, list) else repr(value) for key, value in state.items()
    }
    problem, sgd, times = getattr(cases, name)()
    found = TheoryState.from_query(query)
    assert abs(found.problem.gram.values - problem.gram.values).max() < 1e-15
    assert found.training == sgd
    assert found.until == times[-1]


def test_theory_answers_are_those_of_python(explorer):
    told = explorer.json("/api/theory?rho=0.8&variance=0.5,1.5&overlap=0.5")
    theory = tm.predict(*cases.centred_crossing()[:2], told["times"])
    assert told["sentence"] == tm.leaders(theory, "loss").headline.line
    assert told["curves"]["error"] == theory["error"].values.tolist()
    assert told["stopping"][1]["time"] == tm.fairness.stopping(theory).best_mean.time


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"rho": "1.2"}, "`rho` should lie strictly between 0 and 1. Found rho = 1.2."),
        ({"rho": "half"}, "`rho` should be a number. Found rho = 'half'."),
        ({"variance": "1"}, "`variance` should be two numbers, as 1,2. Found variance = '1'."),
        ({"until": "1e9"}, "`until` should lie between 0.01 and a million. Found until = 1e+09."),
        ({"lr": "nan"}, "`lr` should be a number. Found lr = 'nan'."),
    ],
)
def test_bad_numbers_are_refused_in_a_sentence(explorer, query, sentence):
    answer = explorer.ask(f"/api/theory?{urlencode(query)}")
    assert answer.status == 400
    assert json.loads(answer.text) == {"error": sentence}


def test_what_json_cannot_hold_is_null():
    assert finite({"a": [1.0, float("nan"), (float("inf"), "x")]}) == {"a": [1.0, None, [None, "x"]]}


def test_a_file_is_no_folder(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["explore", str(tmp_path / "file")]) == 2
    assert "`folder` should be a folder of run directories. Found a file at" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_ends_it_within_two_seconds_while_it_works(tmp_path, start_explorer, crowded):
    with start_explorer(tmp_path) as found:
        found.json("/api/theory")  # the analyst runs
        begun = time.monotonic()
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(60) == 0
        assert time.monotonic() - begun < 2.0 * crowded()


def test_a_third_group_is_that_of_python():
    from tiltmeter.explorer.theory_answers import theory_answers

    told = theory_answers({"third": "0.2,1,0.2"})
    state = TheoryState.from_query({"third": "0.2,1,0.2"})
    theory = tm.predict(state.problem, state.training, state.times, curves=("loss",))
    assert told["curves"]["loss"] == theory["loss"].values.tolist()
    assert state.problem.weight.values.tolist() == pytest.approx([0.64, 0.16, 0.2])
    crossing = next(one.time for one in tm.leaders(theory, "loss").changes if one.pair == ("+", "-"))
    assert told["sentence"] == f"Group - has the lowest loss until t = {crossing:.4g}, then group +."
    tiny = theory_answers({"third": "1e-9,1,0.2"})["curves"]["loss"]  # a group without members changes nothing
    two = theory_answers({})["curves"]["loss"]
    assert [row[:2] for row in tiny] == [pytest.approx(row, abs=1e-7) for row in two]
    with pytest.raises(ValueError, match="A third group is shown for fresh examples only"):
        TheoryState.from_query({"third": "0.2,1,0.2", "samples": "2"})
    with pytest.raises(ValueError, match=r"`third` should be three numbers, as 0.2,1,0.5. Found third = '1'."):
        TheoryState.from_query({"third": "1"})
    with pytest.raises(ValueError, match=r"`third` should begin with a share strictly between 0 and 1. Found 2"):
        _ = TheoryState.from_query({"third": "2,1,0.5"}).problem


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_a_training_and_a_forecast_ends_every_process(tmp_path, start_explorer, until, crowded):
    pytest.importorskip("torch")
    with start_explorer(tmp_path / "runs", "--allow-runs") as found:
        found.post("/api/jobs", {"kind": "train", "settings": {"source": "digits", "steps": 100_000}})
        until(lambda: found.json("/api/jobs")[0]["progress"], 120)
        threading.Thread(target=asked_in_vain, args=(found, "/api/forecast?steps=600&full=yes"), daemon=True).start()
        workers = until(lambda: len(ended := children(found.process.pid)) >= 2 and ended, 60)
        begun = time.monotonic()
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(60) == 0
        assert time.monotonic() - begun < 2.0 * crowded()
        until(lambda: not any(alive(one) for one in workers), 5)


def asked_in_vain(found, path):
    with contextlib.suppress(OSError, http.client.HTTPException):
        found.ask(path)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(one) for one in file.read().split()]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
