"""The direct run: the same steps as PyTorch's optimisers, repeated data, and memorisation."""

import numpy as np
import pytest

from tiltmeter import SGD, Fixed, simulate, teacher_mixture
from tiltmeter.theory.problem.optimisers import Adam, AdamW, SignSGD
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.problem.students import Erf, Linear, Network
from tiltmeter.theory.simulation.direct_method import Direct
from tiltmeter.theory.simulation.setting import StepSettings, setting

PROBLEM = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
D, SAMPLES, STEPS = 12, 18, 25
ALL = {"batch": SAMPLES, "start": Random(0.7), "train_bias": True}
OPTIMISERS = {
    "sgd": SGD(lr=0.4, weight_decay=0.3, **ALL),
    "momentum": SGD(lr=0.2, momentum=0.7, weight_decay=0.3, **ALL),
    "nesterov": SGD(lr=0.2, momentum=0.7, nesterov=True, weight_decay=0.3, **ALL),
    "clip": SGD(lr=0.4, clip=0.3, momentum=0.5, **ALL),
    "adam": Adam(lr=0.8, weight_decay=0.2, betas=(0.8, 0.95), **ALL),
    "adamw": AdamW(lr=0.8, weight_decay=0.2, betas=(0.8, 0.95), **ALL),
}


def groups_of_parameters(torch, optimiser, w, scalars):
    """The same optimiser in PyTorch; vectors and scalars have their own learning rates (see `Adam`)."""
    if isinstance(optimiser, Adam):
        kind = torch.optim.AdamW if isinstance(optimiser, AdamW) else torch.optim.Adam
        given = [
            {"params": [w], "lr": optimiser.lr / D**1.5, "weight_decay": optimiser.weight_decay},
            {"params": scalars, "lr": optimiser.lr / D, "weight_decay": 0.0},
        ]
        if isinstance(optimiser, AdamW):  # PyTorch decays by its own learning rate: lr weight_decay / d for W
            given[0]["weight_decay"] = optimiser.weight_decay * D**0.5
        return kind(given, betas=optimiser.betas, eps=optimiser.epsilon)
    given = [{"params": [w], "weight_decay": optimiser.weight_decay}, {"params": scalars, "weight_decay": 0.0}]
    return torch.optim.SGD(given, lr=optimiser.lr / D, momentum=optimiser.momentum, nesterov=optimiser.nesterov)


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("student", [Linear(), Network(2, Erf(), True, (0.8, -0.5))], ids=["linear", "erf"])
def test_full_batches_are_those_of_pytorch(name, student):
    torch = pytest.importorskip("torch")
    optimiser = OPTIMISERS[name]
    chosen = setting(PROBLEM, optimiser, student, Fixed(SAMPLES / D), D)
    run = Direct().begin(chosen, (4,))
    x, y = torch.tensor(run._inputs[0]), torch.tensor(2.0 * run._labels[0] - 1.0)
    w = torch.tensor(run._w[0], requires_grad=True)
    second = torch.tensor(run._scalars[0, :-1], requires_grad=isinstance(student, Network))
    bias = torch.tensor(run._scalars[0, -1], requires_grad=True)
    learned = [bias] + ([second] if second.requires_grad else [])
    twin = groups_of_parameters(torch, optimiser, w, learned)
    for _ in range(STEPS):
        fields = x @ w.T
        hidden = torch.erf(fields / 2**0.5) if isinstance(student, Network) else fields
        loss = 0.5 * ((hidden @ second + bias - y) ** 2).mean()
        twin.zero_grad()
        loss.backward()
        if getattr(optimiser, "clip", None):
            torch.nn.utils.clip_grad_norm_([w, *learned], optimiser.clip * D**0.5)
        twin.step()
    pace = StepSettings(chosen.sgd, chosen.par.groups, D)
    run.advance(0, STEPS, pace.rates(0, STEPS), pace.weights(0, STEPS), 1)
    np.testing.assert_allclose(run._w[0], w.detach().numpy(), atol=2e-6)
    np.testing.assert_allclose(run._scalars[0, -1], bias.item(), atol=2e-6)
    np.testing.assert_allclose(run._scalars[0, :-1], second.detach().numpy(), atol=2e-6)


def test_signs_move_every_coordinate_alike():
    chosen = setting(PROBLEM, SignSGD(lr=0.6), Linear(), Fixed(1.0), D)
    run = Direct().begin(chosen, (0,))
    run.advance(0, 1, np.array([0.6 / D]), np.ones((1, 2, 2)), 1)
    np.testing.assert_allclose(np.abs(run._w[0]), 0.6 / D**1.5)


class TestFixed:
    def test_an_epoch_sees_every_sample_once(self):
        """A data set of one sample per epoch position: after whole epochs, order aside, all have been used."""
        chosen = setting(PROBLEM, SGD(lr=0.1), Linear(), Fixed(1.5), D)
        run = Direct().begin(chosen, (0,))
        before = run._order[0].copy()
        run.advance(0, 18, np.array([0.1 / D]), np.ones((1, 2, 2)), 1)
        assert sorted(run._order[0]) == list(range(18))
        assert (run._order[0] != before).any()

    def test_it_memorises_where_fresh_samples_would_not(self):
        times = [Fixed(0.5).epochs(n) for n in (1, 400)]
        data, sgd = Fixed(0.5), SGD(lr=0.3)
        runs = simulate(PROBLEM, sgd, times, d=60, seeds=6, method=Direct(), data=data)
        trained, tested = runs["training_loss"].mean("seed"), runs["loss"].mean("seed")
        assert (trained.isel(time=-1) < 0.01).all()
        assert (tested.isel(time=-1) > 0.2).all()
        assert (runs["training_error"].isel(time=-1) == 0).all()
        assert runs.origin.settings["data"] == Fixed(0.5).to_json()

    def test_much_data_is_like_fresh_data(self):
        chosen = {"d": 30, "seeds": 300, "method": Direct(), "curves": ("loss",)}
        fresh = simulate(PROBLEM, SGD(lr=0.4), [3.0], **chosen)["loss"]
        once = simulate(PROBLEM, SGD(lr=0.4), [3.0], data=Fixed(3.0), **chosen)["loss"]  # one epoch is all fresh
        error = np.sqrt((fresh.var("seed") + once.var("seed")) / 300)
        assert float((abs(fresh.mean("seed") - once.mean("seed")) / error).max()) < 3.5

    def test_a_group_without_samples_has_no_training_loss(self):
        rare = teacher_mixture(0.9999, 0.0, (1.0, 1.0), 0.5)
        runs = simulate(rare, SGD(lr=0.1), [1.0], d=20, method=Direct(), data=Fixed(0.5))
        assert runs["training_loss"].sel(group="-").isnull().all()
        assert runs["training_loss"].sel(group="+").notnull().all()

    def test_it_needs_a_size(self):
        with pytest.raises(ValueError, match=r"`samples` should be positive. Found samples = 0"):
            Fixed(0)


class TestAdam:
    def test_it_learns(self):
        runs = simulate(PROBLEM, Adam(lr=0.3), [0.0, 20.0], d=100, seeds=4, method=Direct())
        assert (runs["loss"].isel(time=-1).mean("seed") < 0.75 * runs["loss"].isel(time=0).mean("seed")).any()
        assert runs.origin.settings["sgd"]["optimiser"] == "Adam"

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"lr": -1.0}, r"`lr` should be positive. Found lr = -1"),
            ({"betas": (0.9, 1.0)}, r"`betas` should be two numbers in \[0, 1\). Found betas = \(0.9, 1.0\)"),
            ({"epsilon": 0.0}, r"`epsilon` should be positive. Found epsilon = 0.0"),
            ({"batch": 0}, r"`batch` should be at least 1. Found batch = 0"),
        ],
    )
    def test_bad_values(self, changes, message):
        with pytest.raises(ValueError, match=message):
            Adam(**{"lr": 0.1, **changes})
