"""Every feature of training, in the chain and in the direct run: the same means and spreads at small d."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

from tiltmeter import SGD, simulate, teacher_mixture
from tiltmeter.schedules import Cosine, PowerDecay
from tiltmeter.theory import Mixture
from tiltmeter.theory.problem.starts import Overlaps, Random
from tiltmeter.theory.problem.students import Erf, Identity, Linear, Network, ReLU, Tanh
from tiltmeter.theory.simulation.direct_method import Direct

TWO = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
START = Overlaps(M={"+": 0.2, "-": -0.2}, R={"+": 0.5, "-": 0.3}, Q=1.2, bias=0.3)
PAIR = Overlaps(
    M={"+": (0.2, -0.1), "-": (-0.2, 0.1)}, R={"+": (0.5, 0.1), "-": (0.3, 0.2)}, Q=((1.2, 0.1), (0.1, 0.8)), bias=0.1
)


def three_groups():
    rng = np.random.default_rng(5)
    means, teachers = rng.normal(size=(2, 3, 8)) * np.array([0.3, 1.0])[:, None, None]
    names = "abc"
    return Mixture.from_vectors(
        dict(zip(names, (0.5, 0.3, 0.2), strict=True)),
        dict(zip(names, (0.5, 1.0, 1.5), strict=True)),
        dict(zip(names, means, strict=True)),
        dict(zip(names, teachers, strict=True)),
    )


FEATURES = {
    "start": (TWO, SGD(lr=0.5, start=START), Linear()),
    "bias": (TWO, SGD(lr=0.5, train_bias=True, start=Random()), Linear()),
    "weights": (TWO, SGD(lr=0.5, weights={"+": 0.5, ("-", 1): 2.0, ("-", -1): 0.7}), Linear()),
    "proportions": (TWO, SGD(lr=0.5, proportions={"+": 0.2, "-": 0.8}), Linear()),
    "batch": (TWO, SGD(lr=0.9, batch=4, start=Random()), Linear()),
    "decay": (TWO, SGD(lr=0.5, weight_decay=0.8, start=Random()), Linear()),
    "schedules": (TWO, SGD(lr=Cosine(0.8, 2.0, 0.1), weights={"-": PowerDecay(3.0, 1.0)}), Linear()),
    "clip": (TWO, SGD(lr=0.8, clip=0.6, weight_decay=0.5, train_bias=True, start=Random()), Linear()),
    "momentum": (TWO, SGD(lr=0.3, momentum=0.6, start=Random(), train_bias=True), Linear()),
    "nesterov": (TWO, SGD(lr=0.3, momentum=0.6, nesterov=True, weight_decay=0.5, clip=0.8, batch=2), Linear()),
    "three groups": (three_groups(), SGD(lr=0.4, train_bias=True, batch=2, weights={"c": 2.0}), Linear()),
    "second layer": (TWO, SGD(lr=0.5, train_bias=True, start=PAIR), Network(2, Erf(), True)),
    "relu, all at once": (
        TWO,
        SGD(lr=0.4, batch=5, momentum=0.5, nesterov=True, weight_decay=0.4, clip=0.5, train_bias=True, start=PAIR),
        Network(2, ReLU(), True, (1.0, -0.5)),
    ),
    "tanh, three units": (three_groups(), SGD(lr=0.5, batch=2, start=Random()), Network(3, Tanh())),
    "linear units": (TWO, SGD(lr=0.5, clip=0.7, start=Random()), Network(2, Identity(), True)),
}


def columns(runs, names):
    return np.concatenate(
        [runs[n].transpose("seed", ...).values.reshape(runs[n].sizes["seed"], -1) for n in names], 1
    ).T


@pytest.mark.parametrize("feature", FEATURES)
def test_chain_and_direct_run_agree_in_law(feature):
    problem, sgd, student = FEATURES[feature]
    names = ["M", "R", "Q"]
    names += ["student_bias"] if sgd.train_bias else []
    names += ["second_layer"] if isinstance(student, Network) and student.train_second_layer else []
    chosen = {"d": 16, "seeds": 1500, "student": student, "curves": names}
    chain = columns(simulate(problem, sgd, [0.5, 3.0], **chosen), names)
    direct = columns(simulate(problem, sgd, [0.5, 3.0], method=Direct(), **chosen), names)
    p = []
    for x, y in zip(chain, direct, strict=True):
        z = (x.mean() - y.mean()) / np.sqrt(x.var(ddof=1) / len(x) + y.var(ddof=1) / len(y))
        p += [2 * norm.sf(abs(z)), ks_2samp(x, y, method="asymp").pvalue]
    assert min(p) > 1e-3 / (len(p) * len(FEATURES))


def test_a_given_start_is_met_exactly():
    for method in ({}, {"method": Direct()}):
        runs = simulate(TWO, SGD(lr=0.5, start=START), [0.0], d=30, seeds=3, **method)
        np.testing.assert_allclose(runs["M"].values[0, 0], 0.2, atol=1e-12)
        np.testing.assert_allclose(runs["R"].values[0, 1], 0.3, atol=1e-12)
        np.testing.assert_allclose(runs["Q"].values[0], 1.2, atol=1e-12)
        pair = simulate(TWO, SGD(lr=0.5, start=PAIR), [0.0], d=30, seeds=3, student=Network(2), **method)
        np.testing.assert_allclose(pair["R"].sel(group="-").values[0, :, 0], [0.3, 0.2], atol=1e-12)
        np.testing.assert_allclose(pair["Q"].values[0, :, :, 0], [[1.2, 0.1], [0.1, 0.8]], atol=1e-12)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (Overlaps(M={"+": (0.5, 0.0)}, Q=((1.0, 0.0), (0.0, 1.0))), r"No student has these starting overlaps"),
        (Overlaps(R={"+": (1.0, 0.0), "-": (0.6, 0.0)}, Q=((0.5, 0.0), (0.0, 1.0))), r"`Q` of the start should be at"),
        (Overlaps(Q=1.0), r"`Q` of the start should be 2 x 2 for 2 units. Found Q = 1.0"),
        (
            Overlaps(R={"+": 0.3}, Q=((1.0, 0.0), (0.0, 1.0))),
            r"`R` of the start should have one number for each of the 2",
        ),
    ],
)
def test_an_impossible_start_of_a_network_is_refused(start, message):
    with pytest.raises(ValueError, match=message):
        simulate(TWO, SGD(lr=0.1, start=start), [1.0], d=30, student=Network(2))


def test_overlaps_per_unit_are_refused_for_a_linear_student():
    with pytest.raises(ValueError, match=r"`start` gives overlaps per unit, as for a Network"):
        simulate(TWO, SGD(lr=0.1, start=PAIR), [1.0], d=30)


def test_clipping_bounds_every_step():
    sgd = SGD(lr=1.0, clip=0.01)
    runs = simulate(TWO, sgd, np.arange(0, 40) / 20, d=20, seeds=5)
    # A step moves W by at most lr clip, and sqrt(Q) = |W| / sqrt(d) by that over sqrt(d).
    length = np.sqrt(runs["Q"].values)
    assert np.abs(np.diff(length, axis=0)).max() <= 0.01 / np.sqrt(20) + 1e-12
