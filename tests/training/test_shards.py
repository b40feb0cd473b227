"""Held-out data in parts on two processes: the curves of the whole, and a sentence where a rank does not come."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tiltmeter as tm  # noqa: E402

WORKER = textwrap.dedent(
    """
    import os, sys, warnings
    import numpy as np, torch
    import torch.distributed as dist
    import tiltmeter as tm
    from tiltmeter.training import shards

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rank, mode, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    dist.init_process_group("gloo", init_method=f"file://{place}/rendezvous", rank=rank, world_size=2)
    torch.manual_seed(0)
    x = torch.randn(200, 3)
    group = ["a"] * 60 + ["b"] * 60 + ["c"] * 80  # the first rank has no point of c
    data = tm.GroupedData(x, (x[:, 0] > 0).long().numpy(), group)
    mine = slice(0, 120) if rank == 0 else slice(120, 200)
    held_out = tm.GroupedData(x[mine], data.y[mine], group[mine])
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    if mode == "missing":
        shards.PATIENCE = 3.0
    ddp = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.1)
    whole = tm.Probe(model, data, to=f"{place}/whole", budget=None) if mode == "parts" else None
    probe = tm.Probe(model, held_out, tm.Watch(sharded=True), f"{place}/parts", budget=None) if mode != "without" else None
    try:
        for step in range(6):
            if probe is not None and not (mode == "missing" and rank == 1 and step == 2):
                probe(step)
            if whole is not None:
                whole(step)
            optimiser.zero_grad()
            (ddp(x[rank::2]) ** 2).mean().backward()
            optimiser.step()
        if probe is not None:
            probe.close()
            print("LOSS", probe.trajectory()["loss"].values.tolist())
        if whole is not None:
            whole.close()
    except RuntimeError as error:
        print("SAID", error)
        os._exit(0)
    print("WEIGHTS", [v.tolist() for v in model.state_dict().values()])
    dist.barrier()
    dist.destroy_process_group()
    """
)


def both(mode, place):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(r), mode, str(place)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for r in (0, 1)
    ]
    done = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], done
    return [out for out, _ in done]


def line(out, word):
    return next(line for line in out.splitlines() if line.startswith(word))


def test_parts_give_the_curves_of_the_whole(tmp_path):
    """Statistics of BatchNorm differ between the ranks: rank 0's model is the one looked at, as without parts."""
    outs = both("parts", tmp_path)
    parts, whole = tm.load(tmp_path / "parts"), tm.load(tmp_path / "whole")
    assert parts["loss"].coords["group"].values.tolist() == ["a", "b", "c"]
    assert set(parts) == set(whole)
    for name in parts:
        np.testing.assert_allclose(parts[name].values, whole[name].values, rtol=1e-6, atol=1e-7, err_msg=name)
    assert parts.origin.problem["held_out"]["points"] == 200
    assert line(outs[0], "LOSS") == line(outs[1], "LOSS"), "all ranks know all curves"


@pytest.mark.slow
def test_the_training_is_the_same_with_and_without(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for one, other in zip(both("parts", tmp_path / "a"), both("without", tmp_path / "b"), strict=True):
        assert line(one, "WEIGHTS") == line(other, "WEIGHTS")


@pytest.mark.slow
def test_a_rank_that_does_not_come_is_named(tmp_path):
    outs = both("missing", tmp_path)
    said = "\n".join(outs)
    assert "Rank 1 did not look at step 2 within 3 s, which rank 0 waited for." in said
    assert len(tm.load(tmp_path / "parts")["loss"].coords["time"]) == 2, "what was recorded before stays"


def test_parts_need_a_process_group(flat):
    with pytest.raises(
        RuntimeError, match=r"Found no process group: call torch\.distributed\.init_process_group first"
    ):
        tm.Probe(torch.nn.Linear(6, 1), flat, tm.Watch(sharded=True), budget=None)


def test_whoever_cannot_look_in_parts_says_so(flat):
    recipe = tm.Recipe(lr=0.1, steps=5)
    for run in (tm.train, tm.forecast):
        with pytest.raises(ValueError, match="only a Probe in your own loop evaluates in parts"):
            run(torch.nn.Linear(6, 1), *flat.split(0.5), recipe, watch=tm.Watch(sharded=True))
