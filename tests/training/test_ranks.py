"""A probe in several processes: one writes, nobody waits, and different points are told."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tiltmeter as tm  # noqa: E402
from tiltmeter.training.shards import rank, refuse_sharded  # noqa: E402

WORKER = textwrap.dedent(
    """
    import os, sys, warnings
    import numpy as np, torch
    import torch.distributed as dist
    import tiltmeter as tm

    rank, mode, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    if mode == "before":  # the probe is made before the process group
        start = lambda: dist.init_process_group("gloo", init_method=f"file://{place}/rendezvous", rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo", init_method=f"file://{place}/rendezvous", rank=rank, world_size=2)
        start = lambda: None
    torch.manual_seed(0)
    x = torch.randn(160, 3)
    data = tm.GroupedData(x, (x[:, 0] > 0).long().numpy(), ["a", "a", "b", "b"] * 40)
    held_out = data.take(np.arange(rank, 160, 2)) if mode == "sharded" else data
    model = torch.nn.Linear(3, 1)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        probe = None if mode == "only 0" and rank else tm.Probe(model, held_out, to=f"{place}/run", budget=None)
        start()
        ddp = torch.nn.parallel.DistributedDataParallel(model)
        optimiser = torch.optim.SGD(ddp.parameters(), lr=0.1)
        dist.barrier()
        for step in range(4):
            if probe is not None:
                probe(step)
            optimiser.zero_grad()
            for part in range(2):  # gradients of two batches to one update
                with torch.autocast("cpu", torch.bfloat16), (ddp.no_sync() if part == 0 else torch.enable_grad()):
                    score = ddp(x[rank::2][part::2])
                    (score.float() ** 2).mean().backward()
            optimiser.step()
        if probe is not None:
            probe.close()
    print("WEIGHTS", [p.tolist() for p in model.parameters()])
    for one in said:
        print("SAID", one.message)
    dist.destroy_process_group()
    """
)


def both(mode, place):
    command = [sys.executable, "-c", WORKER]
    started = [
        subprocess.Popen(
            [*command, str(r), mode, str(place)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for r in (0, 1)
    ]
    done = [process.communicate(timeout=240) for process in started]
    assert [process.returncode for process in started] == [0, 0], done
    return [out for out, _ in done]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["same", "only 0", "before", "sharded"])
def test_two_processes(tmp_path, mode):
    outs = both(mode, tmp_path)
    weights = [next(line for line in out.splitlines() if line.startswith("WEIGHTS")) for out in outs]
    assert weights[0] == weights[1]
    run = tm.load(tmp_path / "run")
    assert run["loss"].coords["time"].values.tolist() == [0, 1, 2, 3, 4]
    told = "Rank 1 was given other points to look at than rank 0." in outs[0]
    assert told == (mode == "sharded")


def test_a_launcher_says_the_rank_before_torch_does(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert rank() == 0
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    assert rank() == 0
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert rank() == 3
    model = torch.nn.Linear(3, 1)
    held_out = tm.GroupedData(np.zeros((80, 3)), np.arange(80) % 2, ["a", "b"] * 40)
    assert tm.Probe(model, held_out, budget=None).silent


def test_a_sharded_model_is_refused_in_a_sentence():
    class FullyShardedDataParallel(torch.nn.Linear):
        pass

    with pytest.raises(TypeError, match="sharded by FSDP, so that no rank can evaluate it alone"):
        refuse_sharded(torch.nn.Sequential(FullyShardedDataParallel(2, 1)))
    refuse_sharded(torch.nn.Linear(2, 1))
