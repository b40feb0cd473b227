"""Checkpoints of a training that nobody watched give the run that a probe would have recorded."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.cli import main


def make():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))


STEPS = (0, 5, 20)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Held-out points, the run of a probe, and checkpoints in several formats."""
    folder = tmp_path_factory.mktemp("old")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(800, 3)).astype(np.float32), columns=["a", "b", "c"])
    table["sex"] = rng.choice(["F", "M"], 800)
    table["y"] = (table.a + np.where(table.sex == "F", 1.5, 0.1) * rng.normal(size=800) > 0).astype(int)
    table.to_parquet(folder / "held_out.parquet")
    data = tm.GroupedData.from_frame(table, label="y", group="sex")
    torch.manual_seed(0)
    model = make()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.3)
    x, y = data.tensors()
    for kind in ("plain", "wrapped", "safetensors"):
        (folder / kind).mkdir()
    with tm.Probe(model, data, tm.Watch(when=tm.record.at(STEPS)), budget=None) as probe:
        for step in range(20):
            probe(step)
            if step in STEPS:
                saved(model, step, folder)
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(model(x[:64])[:, 0], y[:64].float()).backward()
            optimiser.step()
        saved(model, 20, folder)
    (folder / "make.py").write_text(
        "from torch import nn\ndef make():\n"
        "    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))\n"
    )
    return folder, data, probe.trajectory()


def saved(model, step, folder):
    state = model.state_dict()
    torch.save(state, folder / "plain" / f"step_{step}.pt")
    lightning = {"epoch": 1, "state_dict": {f"model.{name}": value for name, value in state.items()}}
    torch.save(lightning, folder / "wrapped" / f"epoch=0-step={step}.ckpt")
    place = folder / "safetensors" / f"checkpoint-{step}"
    place.mkdir()
    pytest.importorskip("safetensors.torch").save_file(state, place / "model.safetensors")
    torch.save({"state": {}}, place / "optimizer.pt")


@pytest.mark.parametrize("kind", ["plain", "wrapped", "safetensors"])
def test_the_run_is_that_of_a_probe(kind, trained):
    folder, data, expected = trained
    run = tm.predictions.checkpoints(folder / kind, make, data)
    for name, curve in expected.items():
        assert run[name].identical(curve), name
    assert run.points == expected.points
    assert str(tm.leaders(run)) == str(tm.leaders(expected))


def test_it_goes_on_after_the_last_checkpoint(trained, tmp_path, monkeypatch):
    from tiltmeter.predictions.checkpoints import find_checkpoints

    folder, data, expected = trained
    found = find_checkpoints(folder / "plain")
    tm.predictions.checkpoints(found[:2], make, data, tmp_path / "run")
    loaded = []
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda path, **more: loaded.append(path.name) or load(path, **more))
    run = tm.predictions.checkpoints(found, make, data, tmp_path / "run")
    assert loaded == ["step_20.pt"]
    np.testing.assert_array_equal(run["loss"], expected["loss"])


def test_the_command_line(trained, tmp_path, capsys, monkeypatch):
    folder, _, expected = trained
    monkeypatch.chdir(folder)
    words = ("evaluate", "plain", "--model", "make.py:make", "--data", "held_out.parquet", "--label", "y")
    assert main([*words, "--group", "sex", "--to", str(tmp_path / "run"), "--curve", "error"]) == 0
    assert "Group F has the higher error" in capsys.readouterr().out
    np.testing.assert_array_equal(tm.load(tmp_path / "run")["error"], expected["error"])
    for arguments, sentence in (
        (("--model", "make.py"), "--model should be FILE.py:FUNCTION. Found 'make.py'."),
        (("--model", "none.py:make"), "No file none.py."),
        (("--model", "make.py:other"), "make.py should have a function other. Found NoneType."),
    ):
        assert main(["evaluate", "plain", *arguments, "--data", "held_out.parquet", "--label", "y", "--group", "sex", "--to", str(tmp_path / "b")]) == 2  # fmt: skip
        assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_several_processes_give_the_same(trained, tmp_path, monkeypatch, capsys):
    folder, _, expected = trained
    monkeypatch.chdir(folder)
    words = ("evaluate", "plain", "--model", "make.py:make", "--data", "held_out.parquet", "--label", "y")
    assert main([*words, "--group", "sex", "--to", str(tmp_path / "run"), "--processes", "2"]) == 0
    for name, curve in expected.items():
        np.testing.assert_array_equal(tm.load(tmp_path / "run")[name], curve)
    (folder / "bad").mkdir()
    for step in (1, 2):
        torch.save({"nothing": torch.zeros(1)}, folder / "bad" / f"step_{step}.pt")
    words = ("evaluate", "bad", *words[2:], "--group", "sex", "--to", str(tmp_path / "bad"), "--processes", "2")
    assert main(list(words)) == 2
    assert "step_1.pt should hold the weights of the model" in capsys.readouterr().err


class Command:
    """What a pickle could run."""

    def __reduce__(self):
        return print, ("executed",)


def test_nothing_is_executed(trained, tmp_path, capsys):
    _, data, _ = trained
    torch.save({"0.weight": Command()}, tmp_path / "step_1.pt")
    with pytest.raises(ValueError, match=r"step_1\.pt should be a whole file of weights"):
        tm.predictions.checkpoints(tmp_path, make, data)
    assert "executed" not in capsys.readouterr().out


def test_sentences(trained, tmp_path):
    _, data, _ = trained
    with pytest.raises(ValueError, match=r"`processes` should be a positive integer\. Found processes = 0\."):
        tm.predictions.checkpoints(trained[0] / "plain", make, data, processes=0)
    with pytest.raises(TypeError, match="should be importable by name"):
        tm.predictions.checkpoints(trained[0] / "plain", lambda: make(), data, processes=2)
    with pytest.raises(FileNotFoundError, match="No folder"):
        tm.predictions.checkpoints(tmp_path / "nothing", make, data)
    with pytest.raises(ValueError, match="should hold checkpoints"):
        tm.predictions.checkpoints(tmp_path, make, data)
    torch.save(nn.Linear(3, 1).state_dict(), tmp_path / "step_1.pt")
    with pytest.raises(ValueError, match=r"step_1\.pt should hold the weights of the model\. Found: Missing key"):
        tm.predictions.checkpoints(tmp_path, make, data)
    with pytest.raises(TypeError, match=r"`make` should return a torch\.nn\.Module\. Found int\."):
        tm.predictions.checkpoints(tmp_path, lambda: 3, data)
    torch.save({}, tmp_path / "other-1.pth")
    with pytest.raises(ValueError, match="Every step should have one checkpoint"):
        tm.predictions.checkpoints(tmp_path, make, data)
