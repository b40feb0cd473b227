"""tiltmeter reproduce: lists, runs, goes on after a failure, and says which names exist."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import xarray as xr

from tiltmeter import Trajectory
from tiltmeter.record import Origin
from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.quick_times import QUICK_SECONDS

ALL_NAMES = tuple(EXPERIMENTS)


@dataclass(frozen=True)
class Setting:
    seeds: int = 2


def experiment(name, value):
    """A module like those of the room; `value` None fails."""
    module = ModuleType(f"tiltmeter_lab.named.{name}")
    module.TITLE, module.PAPER, module.NEEDS = f"About {name}", "Nobody", ()
    module.QUICK = module.FULL = Setting()

    def run(setting, keep):
        if value is None:
            raise RuntimeError("no luck")
        curve = xr.DataArray(np.full(1, value), dims="time", coords={"time": [0.0]})
        return {"one": keep("one", lambda: Trajectory({"x": curve}, "t", Origin("toy")))}

    module.run = run
    module.claims = lambda runs: (Claim("It is large", float(runs["one"]["x"][0]), "size", 1.0),)
    module.pictures = lambda runs: {}
    return module


@pytest.fixture(autouse=True)
def three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "a file").touch()
    EXPERIMENTS_BEFORE = dict(EXPERIMENTS)
    for name in EXPERIMENTS_BEFORE:
        monkeypatch.delitem(EXPERIMENTS, name)
    for name, value in (("large", 2.0), ("broken", None), ("small", 0.5)):
        monkeypatch.setitem(sys.modules, f"tiltmeter_lab.named.{name}", experiment(name, value))
        monkeypatch.setattr(f"tiltmeter_lab.named.{name}", sys.modules[f"tiltmeter_lab.named.{name}"], raising=False)
        monkeypatch.setitem(EXPERIMENTS, name, name)
    return tmp_path


def test_times_are_those_of_experiments():
    assert set(QUICK_SECONDS) <= set(ALL_NAMES)
    assert len(QUICK_SECONDS) > 40


def test_list(run, monkeypatch):
    code, out, _ = run("reproduce", "--list")
    assert code == 0
    assert out.startswith("3 experiments.")
    assert "About broken" in out
    assert run("reproduce", "small", "--list")[1].startswith("1 experiment.")
    monkeypatch.setitem(QUICK_SECONDS, "small", 120)
    assert "Takes about 2 min at scale quick." in run("reproduce", "small", "--list")[1]
    assert "At scale quick, about 2 min on two cores." in run("reproduce", "--list")[1]
    assert [row["name"] for row in json.loads(run("reproduce", "--list", "--json")[1])] == ["large", "broken", "small"]


def test_one_by_name(run, three):
    code, out, err = run("reproduce", "large", "--seeds", "4", "--to", "here")
    assert code == 0
    assert out.startswith("1 claim of 1 experiment. Reproduced: 0 of 0 published claims. All claims: 1 measured.")
    assert "Measured: It is large (size 2; at least 1 asked)." in out
    assert "[1/1] large: run" in err
    assert out.endswith(f"Page: {Path('here') / 'verdicts.html'}\n")
    assert "Intervals hold with 95 %; a number without one is exact, or has no known error (measured)." in out
    assert (three / "here" / "verdicts.html").exists()
    assert (three / "here" / "large" / "quick-4-seeds" / "outcome.json").exists()


def test_a_failure_does_not_stop_the_others_but_shows_in_the_code(run, three):
    code, out, err = run("reproduce", "--all", "--to", "here", "--store", "verdicts.json")
    assert code == 1
    assert "broken (quick): failed. RuntimeError: no luck" in out
    assert "small (quick, 2 seeds, 0 s): 1 measured." in out
    assert "[3/3] small: run" in err
    text = (three / "verdicts.json").read_text()
    assert '"state": "failed"' in text
    assert '"name": "small"' in text


def test_a_claim_that_does_not_hold_is_no_failure(run):
    assert run("reproduce", "small")[0] == 0


def test_what_is_not_made_of_cells_cannot_be_judged_in_part(run):
    code, out, _ = run("reproduce", "large", "--partial", "--to", "here")
    assert code == 1
    assert "not made of parts" in out


def test_json(run):
    code, out, _ = run("reproduce", "small", "large", "--json")
    assert code == 0
    assert [(one["name"], one["claims"][0]["verdict"]) for one in json.loads(out)] == [
        ("small", "measured"),
        ("large", "measured"),
    ]


def test_names_are_never_cut_off(run, three, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    name = "a-name-that-is-longer-than-a-third-of-the-line"
    monkeypatch.setitem(EXPERIMENTS, name, "large")
    assert name in run("reproduce", "--list")[1]


def test_an_interrupt_is_not_taken_for_a_failure(run, capsys, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("tiltmeter_lab.reproduce.reproduce", interrupted)
    with pytest.raises(SystemExit) as ended:
        run("reproduce", "--all")
    assert ended.value.code == 130
    assert "Interrupted: repeat the command to continue; complete experiments are in runs" in capsys.readouterr().err


def test_a_process_that_dies_takes_no_other_with_it(run, monkeypatch):
    # A function of a file, since the experiments of these tests exist in this process alone.
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[1] / "study")])
    from lab_cells import experiment_that_may_die

    monkeypatch.setattr("tiltmeter_lab.one_experiment.experiment_cell", experiment_that_may_die)
    code, out, _ = run("reproduce", "--all", "--jobs", "2")
    assert code == 1
    assert "broken (quick): failed. The process that computed it died once" in out
    assert out.count("s): 1 measured.") == 2


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("huge",), "No experiment 'huge'. There are: large, broken, small."),
        (("Smal",), "No experiment 'Smal'. Did you mean 'small'? There are: large, broken, small."),
        (("Smal", "--list"), "No experiment 'Smal'. Did you mean 'small'?"),
        (("large", "--to", "a file/here"), "`to` should be a writable folder. Found a file/here: Not a dir"),
        ((), "Name experiments, or pass --all"),
        (("large", "--all"), "Name experiments, or pass --all"),
        (("large", "--seeds", "0"), "`seeds` should be a number of them, at least 1. Found seeds = 0."),
        (("large", "--jobs", "0"), "`jobs` should be a number of them, at least 1. Found jobs = 0."),
        (("large", "--scale", "huge"), "scale"),
    ],
)
def test_bad_input_is_one_sentence(run, argv, sentence):
    code, out, err = run("reproduce", *argv)
    assert (code, out) == (2, "")
    assert sentence in err
