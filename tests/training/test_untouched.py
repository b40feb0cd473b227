"""The intervention of the probe: with and without, training is bit-identical."""

import random

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm
from tiltmeter.modules.untouched import streams, untouched

STEPS = 24


def conv(*extra):
    return nn.Sequential(nn.Conv2d(1, 4, 3), *extra, nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 4))


class Tied(nn.Module):
    """Encoder and decoder share one matrix."""

    def __init__(self):
        super().__init__()
        self.one = nn.Linear(64, 64, bias=False)
        self.two = nn.Linear(64, 64, bias=False)
        self.two.weight = self.one.weight
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.two(torch.relu(self.one(x.flatten(1)))))


class Counting(nn.Module):
    """Changes its buffers even in evaluation mode, in place and by assignment, and draws from every stream."""

    def __init__(self):
        super().__init__()
        self.inner = conv()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(64))

    def forward(self, x):
        self.calls += 1
        self.mean = 0.9 * self.mean + 0.1 * x.detach().flatten(1).mean(0)
        noise = random.random() + np.random.rand() + torch.rand(()).item()  # noqa: NPY002
        return self.inner(x) * (1.0 + 0.01 * noise) + 0.01 * self.calls + 0.01 * self.mean.sum()


class Several(nn.Module):
    """Returns a dict with a tuple in it."""

    def __init__(self):
        super().__init__()
        self.inner = conv(nn.Dropout(0.3))

    def forward(self, x):
        scores = self.inner(x)
        return {"out": (scores, scores.detach())}


def frozen_norm():
    """A BatchNorm that stays in evaluation mode inside a model in training mode."""
    model = conv(nn.BatchNorm2d(4))
    model[1].eval()
    return model


def plain_step(model, optimizer, x, y, score):
    optimizer.zero_grad()
    nn.functional.cross_entropy(score(model(x)), y).backward()
    optimizer.step()


def sam_step(model, optimizer, x, y, score):
    """Climb to the worst point nearby, take the gradient there, come back: two passes per update."""
    optimizer.zero_grad()
    nn.functional.cross_entropy(score(model(x)), y).backward()
    with torch.no_grad():
        moves = [0.05 * p.grad / (p.grad.norm() + 1e-12) for p in model.parameters()]
        for p, move in zip(model.parameters(), moves, strict=True):
            p.add_(move)
    optimizer.zero_grad()
    nn.functional.cross_entropy(score(model(x)), y).backward()
    with torch.no_grad():
        for p, move in zip(model.parameters(), moves, strict=True):
            p.sub_(move)
    optimizer.step()


def closure_step(model, optimizer, x, y, score):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(score(model(x)), y)
        loss.backward()
        return loss

    optimizer.step(closure)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-2, amsgrad=True)


CASES = {
    "plain SGD with momentum": (conv, sgd, plain_step, {}),
    "Dropout and Adam": (lambda: conv(nn.Dropout(0.5)), adam, plain_step, {}),
    "BatchNorm and AdamW": (lambda: conv(nn.BatchNorm2d(4)), torch.optim.AdamW, plain_step, {}),
    "frozen BatchNorm": (frozen_norm, sgd, plain_step, {}),
    "SAM, two passes": (lambda: conv(nn.Dropout(0.2), nn.BatchNorm2d(4)), sgd, sam_step, {}),
    "LBFGS with a closure": (conv, lambda p: torch.optim.LBFGS(p, max_iter=3), closure_step, {}),
    "tied weights and RMSprop": (Tied, torch.optim.RMSprop, plain_step, {}),
    "buffers and streams used in evaluation": (Counting, sgd, plain_step, {}),
    "spectral norm": (
        lambda: nn.Sequential(nn.Flatten(), nn.utils.parametrizations.spectral_norm(nn.Linear(64, 4))),
        adam,
        plain_step,
        {},
    ),
    "dict of tuples": (Several, adam, plain_step, {"read": lambda output: output["out"][0]}),
}


def nothing(step):
    """What stands in the loop instead of a probe."""


def run(case, data, with_probe, *, workers=0, context=None, **options):
    make, make_optimizer, step_on, more = case
    options = {**more, **options}
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    model = make()
    optimizer = make_optimizer(model.parameters())
    score = options.get("read", lambda output: output)
    train, held_out = data.split(0.4)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*train.tensors()), batch_size=8, shuffle=True, num_workers=workers
    )
    options = {"when": tm.record.every(3), **options}
    probe = tm.Probe(model, held_out, tm.Watch(**options), chunk=10, budget=None) if with_probe else nothing
    step, modes = 0, []
    while step < STEPS:
        for x, y in loader:
            if context is None:
                probe(step)
                step_on(model, optimizer, x, y, score)
            else:
                with context():
                    probe(step)
                    step_on(model, optimizer, x, y, score)
            modes.append([module.training for module in model.modules()])
            step += 1
            if step == STEPS:
                break
    if with_probe:
        probe.close()
        assert probe.trajectory()["loss"].time.values.tolist() == [*range(0, STEPS, 3), STEPS]
    return {
        "model": model.state_dict(),
        "grads": [p.grad for p in model.parameters()],
        "optimizer": optimizer.state_dict(),
        "streams": streams(),
        "modes": modes,
    }


def same(a, b):
    """Equal to the last bit, whatever holds the tensors."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b) and a.dtype == b.dtype
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


@pytest.mark.parametrize("name", CASES)
def test_training_is_bit_identical_with_and_without(name, images):
    without, with_probe = (run(CASES[name], images, probe) for probe in (False, True))
    for part in without:
        assert same(without[part], with_probe[part]), part


def bootstrap(y_true, y_score):
    """A user's measure that draws from every global stream."""
    return np.random.rand() + random.random() + torch.rand(()).item()  # noqa: NPY002


def test_a_measure_that_draws_random_numbers_changes_nothing(images):
    case = CASES["Dropout and Adam"]
    without = run(case, images, False)
    assert same(without, run(case, images, True, measures=[bootstrap]))


def test_the_comparison_would_notice_a_changed_stream(images):
    """Negative control: an evaluation outside of `untouched` draws from the streams and moves the buffers."""
    with torch.no_grad():
        a, b = Counting(), Counting()
        b.load_state_dict(a.state_dict())
        before = streams()
        b(images.tensors()[0][:4])
    assert not same(a.state_dict()["calls"], b.state_dict()["calls"])
    assert not same(before, streams())


def test_workers_of_a_data_loader_draw_the_same(images):
    case = CASES["Dropout and Adam"]
    without, with_probe = (run(case, images, probe, workers=1) for probe in (False, True))
    assert same(without, with_probe)


def test_mixed_precision_is_untouched_also_from_inside_autocast(images):
    """A weight cast without gradient in the evaluation must not stay in autocast's cache: the step would not train
    it."""
    case = CASES["Dropout and Adam"]

    def context():
        return torch.autocast("cpu", dtype=torch.bfloat16)

    without, with_probe = (run(case, images, probe, context=context) for probe in (False, True))
    assert all(grad is not None and grad.abs().sum() > 0 for grad in with_probe["grads"])
    assert same(without, with_probe)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_models_are_untouched(images, backend):
    def make():
        torch._dynamo.reset()
        return torch.compile(conv(), dynamic=False, backend=backend)

    case = (make, sgd, plain_step, {})
    try:
        without = run(case, images, False)
    except Exception as error:
        pytest.skip(f"torch.compile cannot run on this machine: {type(error).__name__}.")
    from torch._dynamo.utils import counters

    counters.clear()
    with_probe = run(case, images, True)
    assert same(without, with_probe)
    graphs = counters["stats"]["unique_graphs"]
    counters.clear()
    run(case, images, False)
    assert counters["stats"]["unique_graphs"] == graphs, "looking must not use up recompilations"


def test_everything_is_put_back_when_the_look_fails(flat):
    model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    before, state = streams(), {k: v.clone() for k, v in model.state_dict().items()}

    def fail():
        with untouched(model):
            assert not model.training
            assert not torch.is_grad_enabled()
            model[1].running_mean += 1.0
            torch.rand(3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert model.training
    assert torch.is_grad_enabled()
    assert torch.is_autocast_cache_enabled()
    assert same(before, streams())
    assert same(state, dict(model.state_dict()))


def test_a_look_between_forward_and_backward_is_allowed(flat):
    """Buffers are only written to where they changed, so that saved tensors stay valid."""
    model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.Linear(3, 1))
    probe = tm.Probe(model, flat, watch=tm.Watch(when=tm.record.every(1)), budget=None)
    x, _ = flat.tensors()
    loss = model(x).square().mean()
    probe(0)
    loss.backward()
    assert model[0].weight.grad is not None


class Vain(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6))

    def forward(self, x):
        with torch.no_grad():
            self.weight.mul_(0.5)
        return x @ self.weight


def test_a_model_that_changes_its_parameters_is_refused(flat):
    with pytest.raises(
        RuntimeError, match="Evaluating the model changed its parameter 'weight': it cannot be measured"
    ):
        tm.Probe(Vain(), flat, budget=None)


def test_a_scaler_and_accumulated_gradients_are_untouched(images):
    """Steps are updates: the probe is called once for every two batches; the scaler may leave updates out."""

    def trained(probed):
        torch.manual_seed(0)
        model = conv()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**4)
        x, y = images.tensors()
        probe = tm.Probe(model, images, budget=None) if probed else None
        for step in range(4):
            if probe is not None:
                probe(step)
            for part in range(2):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    scores = model(x[part::2])
                scaler.scale(nn.functional.cross_entropy(scores.float(), y[part::2]) / 2).backward()
            scaler.step(optimiser)
            scaler.update()
            optimiser.zero_grad()
        if probe is not None:
            probe.close()
            assert probe.trajectory()["loss"].coords["time"].values.tolist() == [0, 1, 2, 3, 4]
        return {"model": model.state_dict(), "scaler": scaler.state_dict()}

    assert same(trained(False), trained(True))
