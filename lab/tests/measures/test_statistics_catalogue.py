"""What every measure of dependence, distribution and rank owes: nulls, words, its cost, an untouched model."""

import numpy as np
import pytest
import torch

import tiltmeter as tm
import tiltmeter_lab as lab
from tiltmeter.data.public.digits import digits
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.untouched import untouched
from tiltmeter_lab.measures.catalogue import find, forward_passes
from tiltmeter_lab.measures.measure import snapshot_of

NAMES = ("randomised", "low-dimensional-dependence", "distributional", "weight-rank", "balancedness", "effective-rank")


@pytest.fixture(scope="module")
def few():
    _, held_out = digits()
    return held_out.take([place for group in held_out.groups for place in held_out.of_group(group)[:40]])


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_by_its_name(name, few):
    torch.manual_seed(0)
    model = mlp(64, (16, 16), 10)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    kind = find(name)
    assert all((kind.title, kind.takes, kind.exact, kind.absent))
    assert "*not*" in kind.__doc__
    found = lab.measure(name, model, few)
    for curve, values in found.items():
        assert np.isfinite(values).all(), curve
        assert values.attrs["long_name"]
        assert values.attrs["better"] in ("lower", "higher", "neither")
        is_null = curve.endswith(("_null", "_random"))
        assert is_null or f"{curve}_null" in found or values.attrs["null"], curve
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    with tm.Probe(model, few, watch=tm.Watch(measures=(kind(),)), budget=None) as probe:
        probe(0)
    for curve, values in found.items():
        assert np.array_equal(probe.trajectory()[curve].isel(time=0), values), curve


@pytest.mark.parametrize("name", NAMES)
def test_its_cost_is_what_it_says(name, few):
    model = mlp(64, (16, 16), 10)
    passed = []
    model[1].register_forward_pre_hook(lambda _, x: passed.append(len(x[0])))
    measure = find(name)()
    with untouched(model):
        snapshot = snapshot_of(model, few)
        passed.clear()
        measure(snapshot)
        # One point per rank shows which layer is called first.
        assert sum(passed) == pytest.approx(forward_passes(measure, snapshot) * len(few), rel=0.01)
