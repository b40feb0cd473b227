"""Students and activations as values."""

import numpy as np
import pytest

from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.starts import Overlaps, start_from_json, start_to_json
from tiltmeter.theory.problem.students import (
    Erf,
    Identity,
    Linear,
    Network,
    ReLU,
    Tanh,
    activation_from_json,
    student_from_json,
)


@pytest.mark.parametrize("student", [Linear(), Network(3), Network(2, ReLU(), True, (1.0, -1.0)), Network(1, Tanh())])
def test_students_go_to_json_and_back(student):
    assert student_from_json(student.to_json()) == student


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"units": 0}, ValueError, r"`units` should be at least 1. Found units = 0"),
        ({"units": 2.0}, TypeError, r"`units` should be an integer. Found units = 2.0"),
        ({"units": 2, "activation": Erf}, TypeError, r"`activation` should be Erf\(\), ReLU\(\)"),
        ({"units": 2, "activation": "erf"}, TypeError, r"`activation` should be .* Found activation = 'erf'"),
        ({"units": 2, "second_layer": (1.0,)}, ValueError, r"`second_layer` should have one finite number for each of"),
    ],
)
def test_bad_networks_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        Network(**given)


@pytest.mark.parametrize("activation", [Identity(), Erf(), ReLU(), Tanh()])
def test_slopes_are_derivatives_and_compiled_twins_agree(activation):
    from tiltmeter.theory.simulation.compiled_draws import activate, number_of, slope

    x = np.linspace(-3.0, 3.0, 41) + 0.01
    step = 1e-6
    np.testing.assert_allclose(
        activation.slope(x), (activation(x + step) - activation(x - step)) / (2 * step), atol=1e-8
    )
    number = number_of(activation)
    np.testing.assert_allclose([activate(number, v) for v in x], activation(x), atol=1e-14)
    np.testing.assert_allclose([slope(number, v) for v in x], activation.slope(x), atol=1e-14)


def test_an_activation_of_ones_own_is_not_rebuilt():
    with pytest.raises(ValueError, match="cannot be rebuilt from a file"):
        activation_from_json({"repr": "mine"})


def test_overlaps_per_unit_go_to_json_and_back():
    start = Overlaps(M={"+": (0.1, 0.2)}, R={"-": [0.3, 0.1]}, Q=[[1.0, 0.2], [0.2, 1.0]], bias=0.1)
    assert start_from_json(start_to_json(start)) == start
    assert hash(start) == hash(start_from_json(start_to_json(start)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Q": ((1.0, 0.2), (0.1, 1.0))}, r"`Q` of the start should be a number, or for a network symmetric"),
        ({"Q": ((-1.0, 0.0), (0.0, 1.0))}, r"`Q` is a squared length and should not be negative. Found Q = -1"),
        ({"M": {"+": ((0.1,),)}}, r"`M\['\+'\]` of the start should be a number, or for a network one per unit"),
    ],
)
def test_bad_overlaps_per_unit_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Overlaps(**given)


def test_nodes_are_normal_and_fixed():
    nodes = Sobol(1024, 3).nodes(2)
    assert nodes.mean() == pytest.approx(0.0, abs=0.01)
    assert nodes.std() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_array_equal(nodes, Sobol(1024, 3).nodes(2))
    assert (nodes != Sobol(1024, 4).nodes(2)).all()
    with pytest.raises(ValueError, match=r"`count` should be a power of two. Found count = 1000"):
        Sobol(1000)
