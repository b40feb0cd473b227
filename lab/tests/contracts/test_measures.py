"""Interventions that every measure of the catalogue obeys, whoever wrote it.

A new measure is tested by being in the catalogue. Where the digits and a small network do not do, its class offers
`example(seed)`.
"""

import copy
import dataclasses
import re
from functools import partial
from queue import SimpleQueue

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
import tiltmeter_lab as lab
from networks import small_cnn, transformer
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.untouched import streams, untouched
from tiltmeter_lab.measures.catalogue import MEASURES, find, forward_passes
from tiltmeter_lab.measures.measure import example_of, few_digits, snapshot_of

every_measure = pytest.mark.parametrize("name", list(MEASURES))
#: Model and shape of one digit for it.
ARCHITECTURES = {
    "mlp": (lambda outputs: mlp(64, (12,), outputs), (64,)),
    "cnn": (lambda outputs: small_cnn(1, outputs, width=4), (1, 8, 8)),
    "transformer": (lambda outputs: transformer(8, 8, outputs=outputs, width=8, layers=1, heads=2), (8, 8)),
}


def assert_one_sentence(error):
    text = str(error)
    assert len(text) < 400, text
    assert text.endswith("."), text
    assert re.match(r"[A-Z`\"']", text), text


def assert_sound(readings):
    """Numbers, or NaN for no value; every curve has its null."""
    assert readings
    for key, values in readings.items():
        assert not np.isinf(values.values.astype(float)).any(), f"{key} is infinite"
        if key.endswith(("_se", "_null")):
            assert re.sub("_(se|null)$", "", key) in readings, f"{key} belongs to no curve"
        else:
            assert f"{key}_null" in readings or values.attrs.get("null"), f"{key} has no null"
            assert values.attrs.get("long_name") or key in tm.names.CURVES, f"{key} does not say what it is"


def sound_or_one_sentence(measure, model, data):
    try:
        readings = lab.measure(measure, model, data)
    except (TypeError, ValueError) as error:
        assert_one_sentence(error)
    else:
        assert_sound(readings)


@every_measure
def test_it_says_what_it_is(name):
    kind = find(name)
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    for attribute in ("title", "takes", "exact", "absent"):
        text = getattr(kind, attribute)
        assert re.fullmatch(r".+[^.]", text), (attribute, text)
    assert re.search(r"\bnot\b", kind.__doc__), "the docstring says what the number does not mean"


@every_measure
def test_its_readings_have_a_meaning_and_a_null(name):
    measure, model, data = example_of(find(name))
    readings = lab.measure(measure, model, data)
    assert_sound(readings)
    again = lab.measure(measure, model, data)
    assert any(np.isfinite(values.values).any() for values in again.values())


@every_measure
def test_it_does_not_change_the_training(name):
    ends, after, curves = [], [], []
    for watched in (False, True):
        measure, model, data = example_of(find(name))
        torch.manual_seed(5)
        sgd = partial(torch.optim.SGD, lr=0.01, momentum=0.9)
        measures = [measure] if watched else []
        run = tm.train(
            model,
            data,
            data,
            tm.Recipe(sgd, steps=4, batch=8),
            watch=tm.Watch(when=tm.record.every(2), measures=measures),
        )
        curves.append(set(run))
        ends.append(dict(model.state_dict()))
        after.append(streams()["torch"])
        gradients = [p.grad for p in model.parameters()]
        ends[-1] |= {f"gradient {i}": g for i, g in enumerate(gradients) if g is not None}
    assert curves[0] < curves[1], "the measure recorded nothing"
    assert ends[0].keys() == ends[1].keys()
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])
    assert torch.equal(*after)


@every_measure
def test_shape_and_labels_stay_the_same_between_looks(name):
    measure, model, data = example_of(find(name))
    evaluations = []
    for _ in range(3):
        evaluations.append(lab.measure(measure, model, data))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.is_floating_point():
                    parameter.mul_(1.1).add_(0.01)
    for later in evaluations[1:]:
        assert list(later) == list(evaluations[0])
        for key, values in evaluations[0].items():
            assert later[key].dims == values.dims
            assert later[key].attrs == values.attrs
            for dim in values.dims:
                assert later[key].coords[dim].equals(values.coords[dim]), (key, dim)


@every_measure
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
@pytest.mark.parametrize("outputs", [1, 10])
def test_it_works_for_common_networks_or_says_why_not(name, architecture, outputs):
    make, shape = ARCHITECTURES[architecture]
    torch.manual_seed(0)
    few = few_digits(0)
    places = np.r_[0:8, 40:48]
    y = few.y if outputs > 1 else (few.y >= 5).astype(int)
    data = tm.GroupedData(few.x[places].reshape(-1, *shape), y[places], few.codes[places])
    try:
        measure = find(name)()
    except TypeError:  # it needs choices
        measure = example_of(find(name))[0]
    sound_or_one_sentence(measure, make(outputs), data)


@every_measure
@pytest.mark.parametrize("broken", ["one sample", "constant features", "zero weights"])
def test_degenerate_inputs_give_numbers_or_a_sentence(name, broken):
    measure, model, data = example_of(find(name))
    members = [data.groups[code] for code in data.codes]
    if broken == "one sample":
        data = tm.GroupedData(data.x[:1], data.y[:1], members[:1])
    elif broken == "constant features":
        constant = data.x[:1].repeat(len(data), 1) if torch.is_tensor(data.x) else np.repeat(data.x[:1], len(data), 0)
        data = tm.GroupedData(constant.reshape(data.x.shape), data.y, members)
    else:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
    sound_or_one_sentence(measure, model, data)


@every_measure
def test_a_model_that_diverges_does_not_end_the_training(name):
    measure, model, data = example_of(find(name))
    with tm.Probe(model, data, watch=tm.Watch(when=tm.record.every(1), measures=(measure,)), budget=None) as probe:
        probe(0)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(float("nan"))
        probe(1)
        probe(2)
    found = probe.trajectory()
    assert found.diverged == 1
    assert found["loss"].sizes["time"] == 3


def test_a_measure_that_fails_on_a_sound_model_ends_a_strict_probe():
    def broken(snapshot):
        raise ValueError(f"nothing at {snapshot.step}")

    _, model, data = example_of(find("weight-rank"))
    with (
        pytest.raises(ValueError, match="nothing at 0"),
        tm.Probe(model, data, watch=tm.Watch(measures=(broken,)), strict=True, budget=None) as probe,
    ):
        probe(0)


@every_measure
def test_it_costs_what_it_says(name):
    measure, model, data = example_of(find(name))
    with untouched(model):
        snapshot = snapshot_of(model, data)
        said = forward_passes(measure, snapshot)
        counted(model)
        measure(snapshot)
    found = spent() / len(data)
    assert said / 2.0 <= found <= 2.0 * said, f"says {said:g} passes, takes {found:g}"


#: Of the model that is counted. A queue: an evaluation puts lists, closures and global variables back as they were.
COST = SimpleQueue()


def spent():
    """What was counted since this was last asked."""
    return sum(COST.get() for _ in range(COST.qsize()))


def counted(model):
    """Count points passed forward, and twice those passed backward, from now on; `spent` tells."""
    spent()

    class Watched(torch.autograd.Function):
        """The identity; its backward is called whenever a gradient comes back to the output."""

        generate_vmap_rule = True

        @staticmethod
        def forward(output):
            return output.view_as(output)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, gradient):  # noqa: ARG004
            COST.put(2.0 * points(gradient))
            return gradient

        @staticmethod
        def jvp(ctx, tangent):  # noqa: ARG004
            COST.put(points(tangent))
            return tangent.view_as(tangent)

    def points(output):
        """Rows of an output, also behind the wrappers of vmap and grad."""
        per_point = output[0].numel()
        while torch._C._functorch.is_functorch_wrapped_tensor(output):
            output = torch._C._functorch.get_unwrapped(output)
        return output.numel() / per_point

    def hook(module, inputs, output):
        if not torch.is_tensor(output):
            COST.put(len(inputs[0]))
            return None
        COST.put(points(output))
        return Watched.apply(output) if torch.is_grad_enabled() or output.requires_grad else None

    model.register_forward_hook(hook)


def test_copies_and_vectorised_calls_of_the_model_are_counted():
    model = nn.Linear(3, 1)
    counted(model)
    copy.deepcopy(model)(torch.zeros(5, 3)).sum().backward()
    assert spent() == 15.0
    parameters = dict(model.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(model, parameters, (x[None],)).sum()

    torch.vmap(torch.func.grad(loss), (None, 0))(parameters, torch.ones(7, 3))
    assert spent() == 21.0


def test_every_measure_of_the_catalogue_is_a_public_name():
    missing = [place for place in MEASURES.values() if not hasattr(lab.measures, place.partition(":")[2])]
    assert missing == []
