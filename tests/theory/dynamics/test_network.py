"""The theory of student networks: closed integrals, nodes, the linear limit, and the chain."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import SGD, agreement, predict, simulate, teacher_mixture
from tiltmeter.schedules import Cosine
from tiltmeter.theory.dynamics.network import Group, erf_averages, linear_averages, node_averages
from tiltmeter.theory.population.quadrature import Sobol
from tiltmeter.theory.problem.starts import Overlaps, Random
from tiltmeter.theory.problem.students import Erf, Identity, Network, ReLU, Tanh

PROBLEM = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
START = Overlaps(
    M={"+": (0.1, -0.2), "-": (-0.1, 0.2)}, R={"+": (0.2, 0.1), "-": (0.3, -0.1)}, Q=((0.6, 0.1), (0.1, 0.8)), bias=0.1
)
TRAINED = SGD(lr=0.6, train_bias=True, weights={"+": 0.8, "-": 1.3}, weight_decay=0.1, batch=2, start=START)
OVERLAPS = ("M", "R", "Q", "second_layer", "student_bias")


def random_state(seed, units=3, rank=4):
    rng = np.random.default_rng(seed)
    mean, teacher = rng.normal(size=(2, rank))
    group = Group(mean, teacher / np.linalg.norm(teacher), rng.uniform(0.3, 2.0), rng.normal())
    w, rest = 0.5 * rng.normal(size=(units, rank)), 0.5 * rng.normal(size=(units, units))
    return group, w, w @ w.T + rest @ rest.T, rng.normal(size=units), 0.3


class TestAverages:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize(("closed", "activation"), [(erf_averages, Erf()), (linear_averages, Identity())])
    def test_closed_integrals_are_those_of_samples(self, closed, activation, seed):
        state = random_state(seed)
        exact = closed(*state)
        samples = [node_averages(*state, activation, Sobol(2**15, k)) for k in range(6)]
        for name in ("along", "inner", "noise", "outputs", "miss"):
            found = np.array([getattr(sample, name) for sample in samples])
            error = found.std(0, ddof=1) / np.sqrt(len(samples))
            # Six scramblings: a t distribution with five degrees of freedom, at 1e-3 over all numbers of this test.
            assert (np.abs(found.mean(0) - getattr(exact, name)) < 14 * error + 1e-9).all(), name
            assert np.abs(found.mean(0) - getattr(exact, name)).max() < 0.02


class TestPredict:
    @pytest.mark.parametrize("second", [(1.0,), (-1.0,)])
    def test_one_linear_unit_is_the_linear_student(self, second):
        """With the second layer -1 the unit is the mirror image, and the score the same."""
        sgd, times = SGD(lr=0.5, train_bias=True, weight_decay=0.2), [0.5, 2.0, 8.0]
        linear, network = (
            predict(PROBLEM, sgd, times),
            predict(PROBLEM, sgd, times, student=Network(1, Identity(), second_layer=second)),
        )
        for name in linear:
            one = network[name].squeeze([dim for dim in ("unit", "other") if dim in network[name].dims], drop=True)
            sign = second[0] if name in ("M", "R") else 1.0
            np.testing.assert_allclose(sign * one.values, linear[name].values, atol=1e-8, err_msg=name)

    def test_one_erf_unit_of_small_weight_is_nearly_linear(self):
        small = Overlaps(Q=((1e-6,),))
        first = predict(PROBLEM, SGD(lr=0.01, start=small), [0.01], student=Network(1, Erf(), second_layer=(1.0,)))
        slope = np.sqrt(2 / np.pi)
        linear = predict(PROBLEM, SGD(lr=0.01), [0.01])
        np.testing.assert_allclose(first["R"].values[..., 0], slope * linear["R"].values, rtol=1e-3)

    @pytest.mark.parametrize("activation", [Erf(), Tanh()])
    def test_nodes_agree_with_closed_forms_within_their_spread(self, activation):
        student, times = Network(2, activation, True, (0.9, 0.6)), [1.0, 6.0]
        runs = [predict(PROBLEM, TRAINED, times, OVERLAPS, student, Sobol(scramble=k)) for k in range(4)]
        exact = predict(PROBLEM, TRAINED, times, OVERLAPS, student) if activation == Erf() else runs[0]
        for name in OVERLAPS:
            values = np.array([run[name].values for run in runs])
            assert np.abs(values - exact[name].values).max() < 0.006, name

    def test_curves_and_origin(self):
        theory = predict(PROBLEM, TRAINED, [1.0], student=Network(2, ReLU()))
        assert theory["M"].dims == ("time", "group", "unit")
        assert theory["Q"].dims == ("time", "unit", "other")
        assert theory.origin.settings["student"]["activation"] == "ReLU"
        again = theory.evaluate([1.0])
        np.testing.assert_allclose(again["loss"], theory["loss"])

    def test_analysis_takes_a_network_for_what_it_is(self):
        """Not for the linear student of the same problem."""
        student, sgd = Network(2, Erf(), second_layer=(1.0, 1.0)), SGD(lr=0.3, start=START)
        theory = predict(PROBLEM, sgd, np.geomspace(0.1, 10, 8), ("loss",), student)
        assert agreement(theory, predict(PROBLEM, sgd, [1.0, 5.0], ("loss",), student))["loss"].largest < 1e-6
        assert len(tm.leaders(theory, "loss").changes) >= 0

    def test_schedules_and_breaks(self):
        student = Network(2, Erf())
        sgd = SGD(lr=Cosine(0.8, 2.0, 0.1), start=START, weights={"+": lambda t: 1.0 + 0 * t})
        whole = predict(PROBLEM, sgd, [1.0, 2.0, 3.0], ("Q",), student)
        np.testing.assert_allclose(
            predict(PROBLEM, sgd, [3.0], ("Q",), student)["Q"].values[0], whole["Q"].values[2], atol=1e-7
        )

    @pytest.mark.parametrize(
        ("problem", "sgd", "message"),
        [
            (
                teacher_mixture(rho=("rho", [0.2, 0.8])),
                SGD(lr=0.1),
                r"`predict` takes one problem at a time for a Network",
            ),
            (PROBLEM, SGD(lr=0.1, momentum=0.5), r"`predict` has no exact solution with momentum. Use `simulate`"),
            (PROBLEM, SGD(lr=0.1, weights={("+", 1): 2.0}), r"`weights` per \(group, label\).*use `simulate`"),
            (PROBLEM, SGD(lr=40.0, start=Random()), r"Training diverges: the student grows without bound"),
        ],
    )
    def test_refusals(self, problem, sgd, message):
        with pytest.raises(ValueError, match=message):
            predict(problem, sgd, [50.0], student=Network(2, Identity()))


def deviation(activation, seeds, scramblings, times, d=4000):
    """Largest distance of theory and mean over chain runs, in standard errors that include the spread of the nodes."""
    student = Network(2, activation, True, (0.9, 0.6))
    runs = simulate(PROBLEM, TRAINED, times, d, seeds, student=student, curves=OVERLAPS)
    closed = isinstance(activation, Erf)
    nodes = [None] if closed else [Sobol(scramble=k) for k in range(scramblings)]
    theories = [predict(PROBLEM, TRAINED, times, OVERLAPS, student, chosen) for chosen in nodes]
    worst = 0.0
    for name in OVERLAPS:
        values = np.array([theory[name].values for theory in theories])
        error = runs[name].var("seed", ddof=1).values / seeds
        if not closed:
            error = error + values.var(0, ddof=1) * (1 + 1 / len(values))
        worst = max(worst, float((np.abs(values.mean(0) - runs[name].mean("seed").values) / np.sqrt(error)).max()))
    return worst


@pytest.mark.parametrize("activation", [Erf(), ReLU()])
def test_the_chain_follows_the_equations_of_motion(activation):
    assert deviation(activation, 24, 4, [0.5, 2.0]) < 4.0


@pytest.mark.slow
@pytest.mark.parametrize("activation", [Erf(), ReLU(), Tanh()])
def test_the_chain_follows_the_equations_of_motion_for_long(activation):
    assert deviation(activation, 50, 8, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]) < 4.0
