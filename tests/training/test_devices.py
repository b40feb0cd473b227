"""Tensors live where the user's model lives: as far as this can be tested without a GPU, and with one by `-m cuda`."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from away import DEVICE as AWAY
from away import AwayDevice
from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.stored import intervention_named

lab = pytest.importorskip("tiltmeter_lab")
catalogue = pytest.importorskip("tiltmeter_lab.measures.catalogue")
example_of = pytest.importorskip("tiltmeter_lab.measures.measure").example_of

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
    "training/ensemble.py": "rates of runs go to the device of a parameter where they multiply it",
    "training/shards.py": "ranks exchange bytes of the processor",
    "training/stacked_loop.py": "places of points go to the points where they are used",
    "training/steering.py": "what a group intervention remembers is computed by NumPy",
    "interventions/gradient.py": "matrices of groups by groups",
    "interventions/point.py": "part of a module that goes to the layer as a whole",
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


def same(make, **tolerance):
    """What is computed on the second device is what is computed on the processor."""
    torch.manual_seed(0)
    here = make("cpu")
    torch.manual_seed(0)
    with AwayDevice():
        away = make(AWAY)
    assert list(here) == list(away)
    for name, values in here.items():
        np.testing.assert_allclose(away[name].values, values.values, err_msg=name, **tolerance)


def points(count=200, classes=2):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 6)).astype(np.float32)
    y = np.digitize(x[:, 0], np.linspace(-1, 1, classes + 1)[1:-1])
    return tm.GroupedData(x, y, np.where(np.arange(count) % 3, "a", "b"))


def network(device, outputs=1, norm=True):
    """`norm`: with batch normalisation and dropout."""
    torch.manual_seed(0)
    first = [nn.Linear(6, 32), *([nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1)] if norm else [nn.Tanh()])]
    return nn.Sequential(*first, nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, outputs)).to(device)


def test_the_second_device_refuses_what_a_gpu_refuses():
    with AwayDevice():
        model = network(AWAY)
        with pytest.raises(RuntimeError, match="same device"):
            model(torch.zeros(8, 6))
        scores = model(torch.zeros(8, 6, device=AWAY))
        with pytest.raises(RuntimeError, match="numpy"):
            scores.detach().numpy()
        assert scores.detach().cpu().numpy().shape == (8, 1)


@pytest.mark.parametrize("more", [{}, {"clip": 1.0}, {"accumulate": 3}, {"weights": {"a": 2.0}}])
@pytest.mark.parametrize("outputs", [1, 3])
def test_training_on_another_device_is_the_training_on_the_processor(more, outputs):
    data = points(classes=max(2, outputs))
    loss = tm.Logistic() if outputs == 1 else tm.losses.CrossEntropy()
    recipe = tm.Recipe(torch.optim.Adam, steps=6, batch=16, loss=loss, **more)
    same(
        lambda device: tm.train(
            network(device, outputs),
            data,
            data,
            recipe,
        ),
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize("name", list(catalogue.MEASURES))
def test_every_measure_is_the_same_on_another_device(name):
    def measured(device):
        measure, model, data = example_of(catalogue.find(name))
        return lab.measure(measure, model.to(device), data)

    same(measured, rtol=1e-5, atol=1e-6)


# The stand-in has no values for a list that is an index (`x[:, [1, 2]]`), which AttributionPrior has.
@pytest.mark.parametrize(
    "name", [name for name in (*INTERVENTIONS, *lab.interventions.INTERVENTIONS) if name != "AttributionPrior"]
)
def test_every_intervention_is_the_same_on_another_device(name):
    given = {
        "PullSchedule": lambda: tm.interventions.PullSchedule({"a": 0.5, "b": 0.5}),
        "DualAscent": lambda: tm.interventions.DualAscent({"a": float("inf"), "b": 0.3}, 0.5),
        "ProductOfExperts": lambda: lab.interventions.ProductOfExperts(steps=5),
        "Fish": lambda: lab.interventions.Fish(0.2),
    }
    chosen = given.get(name, intervention_named(name))()
    recipe = tm.Recipe(lr=0.1, steps=6, batch=16, loss=tm.Logistic(), interventions=(chosen,))
    data = points()
    more = {"validation": points(100)} if chosen.needs == "validation groups" else {}
    same(lambda device: tm.train(network(device, norm=False), data, data, recipe, **more), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "method",
    [tm.methods.Rehearsal(copies=2), tm.methods.Twin(), tm.methods.Kernel()],
    ids=["rehearsal", "twin", "kernel"],
)
def test_every_forecast_is_the_same_on_another_device(method):
    data, recipe = points(), tm.Recipe(lr=0.1, steps=20, batch=16, loss=tm.Logistic())

    def ahead(device):
        return tm.forecast(network(device, norm=False), data, data, recipe, method=method, progress=False)

    same(ahead, rtol=1e-5, atol=1e-6)


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
        with tm.Probe(model, data, strict=True, budget=None) as probe:
            probe(0)
        runs.append(probe.trajectory())
    for name, curve in runs[0].items():
        np.testing.assert_allclose(runs[1][name], curve, rtol=1e-4, atol=1e-5)
