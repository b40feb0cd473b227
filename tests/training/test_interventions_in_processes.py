"""Interventions in a distributed training: two processes with half a batch each do what one does with the whole."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

WORKER = textwrap.dedent(
    """
    import json, sys
    import numpy as np, torch
    import torch.distributed as dist
    import tiltmeter as tm

    rank, world, place = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    if world > 1:
        dist.init_process_group("gloo", init_method=f"file://{place}/meet", rank=rank, world_size=world)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(320, 4))
    rare = rng.random(320) < 0.2
    data = tm.GroupedData(x, np.where(rare, x[:, 1], x[:, 0]) > 0, np.where(rare, "rare", "common"))
    points, labels = torch.as_tensor(x), torch.as_tensor(data.y).double()
    group = torch.as_tensor(data.codes)
    for intervention in (tm.interventions.GroupDRO(0.5, every=2), tm.interventions.UPGrad()):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1).double()
        ddp = torch.nn.parallel.DistributedDataParallel(model) if world > 1 else model
        steer = tm.Steering(intervention, data, model=model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        for step in range(10):
            batch = torch.arange(step * 32 + rank, step * 32 + 32, world)
            losses = torch.nn.functional.binary_cross_entropy_with_logits(
                ddp(points[batch])[:, 0], labels[batch], reduction="none"
            )
            optimizer.zero_grad()
            steer(losses, group[batch]).backward()
            optimizer.step()
        print(json.dumps([*model.weight.flatten().tolist(), *steer.pull.tolist(), *steer.remembered.tolist()]))
    if world > 1:
        dist.destroy_process_group()
    """
)


def run(world, place):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(rank), str(world), str(place)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    done = [process.communicate(timeout=240) for process in started]
    assert [process.returncode for process in started] == [0] * world, done
    return [np.array([json.loads(line) for line in out.splitlines()]) for out, _ in done]


@pytest.mark.slow
def test_two_processes_are_one(tmp_path):
    (whole,) = run(1, tmp_path)
    first, second = run(2, tmp_path)
    np.testing.assert_allclose(first, second, rtol=1e-12)
    np.testing.assert_allclose(first, whole, rtol=1e-9)
