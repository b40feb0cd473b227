"""Tensors live where the user's model lives: as far as this can be tested without a GPU, and with one by `-m cuda`."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.measures.answers import _beside, _of_one, _of_several
from tiltmeter.measures.point_loss import point_loss
from tiltmeter.measures.task import Task
from tiltmeter.modules.forward import scores

SOURCE = Path(tm.__file__).parent


@pytest.mark.parametrize("room", ["modules", "measures", "interventions", "training", "forecast", "data"])
def test_every_tensor_comes_to_the_processor_before_it_becomes_an_array(room):
    """Lines of examples (>>>) have their tensors on the processor."""
    for path in (SOURCE / room).rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if ".numpy()" in line and ">>>" not in line:
                assert ".cpu()" in line, f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"


@pytest.mark.parametrize("outputs", [1, 3])
def test_what_a_probe_computes_stays_on_the_device_of_the_model(outputs):
    """On the meta device, which has shapes and no values; fake CUDA tensors end a torch that has no CUDA."""
    labels = (0.0, 1.0) if outputs == 1 else (0.0, 1.0, 2.0)
    model = nn.Linear(6, outputs, device="meta")
    x, y = torch.zeros(8, 6), torch.zeros(8, dtype=torch.float32 if outputs == 1 else torch.int64)
    score = next(scores(model, x, None, 8))[1]
    beside = _beside(y, score)
    task = Task(outputs, labels, 0.0 if outputs == 1 else None, "sigmoid" if outputs == 1 else "softmax")
    values = (_of_one if outputs == 1 else _of_several)(score, beside, task)
    loss = point_loss(tm.Logistic() if outputs == 1 else tm.losses.CrossEntropy(), score, beside, labels)
    values |= {"loss": loss.each(score, beside), "score": score, "labels": beside}
    assert {value.device.type for value in values.values()} == {"meta"}


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_probe_on_a_gpu_sees_what_it_sees_on_the_processor():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(np.arange(200) % 3, "a", "b"))
    runs = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
        with tm.Probe(model, data, strict=True) as probe:
            probe(0)
        runs.append(probe.trajectory())
    for name, curve in runs[0].items():
        np.testing.assert_allclose(runs[1][name], curve, rtol=1e-4, atol=1e-5)
