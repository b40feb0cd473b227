"""Tensors live where the user's model lives: as far as this can be tested without a GPU, and with one by `-m cuda`."""

import ast
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
from tiltmeter.training.update import Update

SOURCE = Path(tm.__file__).parent


@pytest.mark.parametrize("room", ["modules", "measures", "interventions", "training", "forecast", "data"])
def test_every_tensor_comes_to_the_processor_before_it_becomes_an_array(room):
    """Lines of examples (>>>) have their tensors on the processor."""
    for path in (SOURCE / room).rglob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if ".numpy()" in line and ">>>" not in line:
                assert ".cpu()" in line, f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"


#: Functions of torch that make a tensor on the default device unless they are told another.
MAKERS = tuple(
    f"torch.{name}"
    for name in (
        *("arange", "as_tensor", "empty", "eye", "from_numpy", "full", "linspace", "ones", "rand", "randn"),
        *("randperm", "tensor", "zeros"),
    )
)
#: Files whose tensors are on the processor on purpose -> why.
ON_THE_PROCESSOR = {
    "training/recipe_grid.py": "rates of runs go to the device of a parameter where they multiply it",
    "training/shards.py": "ranks exchange bytes of the processor",
    "training/stacked_loop.py": "places of points go to the points where they are used",
    "training/steering.py": "what a group intervention remembers is computed by NumPy",
    "interventions/gradient/jacobian_descent.py": "matrices of groups by groups",
    "interventions/point/gradient_reversal.py": "part of a module that goes to the layer as a whole",
    "interventions/shared/by_group.py": "codes go to the scale of the groups where they are used",
    "recipe/checks.py": "an optimiser that takes no step",
    "recipe/rates.py": "an optimiser that takes no step",
    "recipe/recipe.py": "an optimiser that takes no step",
}


def made_anywhere(path):
    """Lines on which a tensor is made, neither on a named device nor moved or copied to another in the same breath."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in MAKERS:
            continue
        named = any(keyword.arg in ("device", "devices") for keyword in node.keywords)
        if named or ast.unparse(node) == "torch.empty(0)":
            continue
        outer, moved = node, False
        while not isinstance(outer, ast.stmt):
            outer = above[outer]
            moved |= isinstance(outer, ast.Call) and ast.unparse(outer.func).endswith((".to", ".copy_"))
        if not moved:
            yield node.lineno


@pytest.mark.parametrize("room", ["training", "recipe", "interventions"])
def test_no_tensor_is_made_on_the_default_device_by_chance(room):
    for path in (SOURCE / room).rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        lines = list(made_anywhere(path))
        assert bool(lines) == (name in ON_THE_PROCESSOR), f"{name}: {lines}"


@pytest.mark.parametrize("more", [{}, {"clip": 1.0}, {"accumulate": 3}, {"weights": {"a": 2.0}}])
@pytest.mark.parametrize("outputs", [1, 2])
def test_steps_of_training_stay_on_the_device_of_the_model(more, outputs):
    """Tensors of two devices in one operation would be an error."""
    rng = np.random.default_rng(0)
    data = tm.GroupedData(rng.normal(size=(12, 6)), np.arange(12) % 2, np.where(np.arange(12) % 3, "a", "b"))
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, outputs)).to("meta")
    loss = tm.Logistic() if outputs == 1 else tm.losses.CrossEntropy()
    recipe = tm.Recipe(torch.optim.Adam, steps=2, batch=8, loss=loss, **more)
    update = Update(model, data, recipe.make_optimiser(model.parameters()), recipe, None)
    for step in range(2):
        update(np.arange(8), step)
    assert {parameter.grad.device.type for parameter in model.parameters()} == {"meta"}


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
