"""Hessian products against the dense Hessian of torch, Lanczos against its eigenvalues, and rank at interpolation."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, hessian

from networks import dense_hessian, transformer
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent.gradient import gradient, trained
from tiltmeter.modules.tangent.hessian import hessian_times, top_eigenpairs


def small(seed=0, points=30):
    torch.manual_seed(seed)
    model = mlp(5, (6,), 3, "tanh").double()
    x, y = torch.randn(points, 5, dtype=torch.float64), torch.randint(3, (points,))
    return model, x, y, lambda places: nn.functional.cross_entropy(model(x[places]), y[places], reduction="none")


def torch_hessian(model, x, y):
    """The second route: torch.func on the whole set at once."""
    names, shapes = zip(*((n, p.shape) for n, p in model.named_parameters()), strict=True)
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    def loss(vector):
        parts = vector.split([s.numel() for s in shapes])
        state = {n: part.reshape(s) for n, part, s in zip(names, parts, shapes, strict=True)}
        return nn.functional.cross_entropy(functional_call(model, state, (x,)), y)

    return hessian(loss)(flat)


def test_products_are_those_of_the_dense_hessian_whatever_the_chunk():
    model, x, y, losses = small()
    places = torch.arange(30)
    expected = torch_hessian(model, x, y)
    found = dense_hessian(losses, trained(model), places, chunk=7)
    assert torch.allclose(found, expected, atol=1e-12)
    vector = torch.randn(len(expected), dtype=torch.float64)
    assert torch.allclose(hessian_times(losses, trained(model), places, vector), expected @ vector, atol=1e-12)


def test_the_largest_eigenvalues_and_their_residuals():
    model, x, y, losses = small(1)
    exact = torch.linalg.eigvalsh(torch_hessian(model, x, y)).flip(0)
    places, size = torch.arange(30), len(exact)

    def times(vector):
        return hessian_times(losses, trained(model), places, vector)

    values, vectors, residuals = top_eigenpairs(times, torch.ones(size, dtype=torch.float64), 3, 25)
    for i in range(3):
        true = torch.stack([times(vectors[:, i]) - values[i] * vectors[:, i]]).norm()
        assert float(true) == pytest.approx(float(residuals[i]), abs=1e-9)
        assert float((exact - values[i]).abs().min()) <= float(residuals[i]) + 1e-9
    assert float(values[0]) == pytest.approx(float(exact[0]), rel=1e-8)
    positive = int((exact > 1e-6).sum())
    more, _, _ = top_eigenpairs(times, torch.randn(size, dtype=torch.float64), positive, size)
    assert torch.allclose(more, exact[:positive], atol=1e-8)


def test_at_interpolation_the_rank_is_the_number_of_points():
    """48 parameters, 8 points: at zero loss the Hessian is J^T J / 8, of rank 8 (Sagun et al., 2018)."""
    torch.manual_seed(0)
    model = mlp(4, (8,), 1, "tanh").double()
    with torch.no_grad():  # 4 x 8 + 8 + 8 parameters are trained: the output has no offset
        model[-1].bias.zero_()
    model[-1].bias.requires_grad_(False)
    x, y = torch.randn(8, 4, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    parameters = trained(model)
    assert sum(p.numel() for p in parameters) == 48
    places = torch.arange(8)

    def losses(places):
        return 0.5 * (model(x[places])[:, 0] - y[places]) ** 2

    optimiser = torch.optim.LBFGS(
        parameters, max_iter=2000, tolerance_grad=1e-14, tolerance_change=1e-18, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        loss = losses(places).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    # Newton steps on the 8 residuals bring the loss down to rounding.
    for _ in range(5):
        rows = [
            torch.cat([g.reshape(-1) for g in torch.autograd.grad(model(x[i : i + 1]).sum(), parameters)])
            for i in range(8)
        ]
        residual = (model(x)[:, 0] - y).detach()
        step = torch.linalg.lstsq(torch.stack(rows), residual).solution
        with torch.no_grad():
            for p, part in zip(parameters, step.split([p.numel() for p in parameters]), strict=True):
                p -= part.reshape(p.shape)
    assert float(losses(places).detach().mean()) < 1e-24
    values = torch.linalg.eigvalsh(dense_hessian(losses, parameters, places))
    assert int((values > 1e-6 * values.max()).sum()) == 8
    assert float(values.min()) > -1e-9
    # Away from interpolation there is no such limit.
    with torch.no_grad():
        parameters[0].add_(0.3)
    moved = torch.linalg.eigvalsh(dense_hessian(losses, parameters, places))
    assert int((moved.abs() > 1e-6 * moved.max()).sum()) > 8


def test_attention_has_second_derivatives_too():
    torch.manual_seed(0)
    model = transformer(4, 3, width=4, layers=1, heads=2).double().eval()
    x, y = torch.randn(6, 4, 3, dtype=torch.float64), torch.randn(6, dtype=torch.float64)
    parameters, places = trained(model), torch.arange(6)

    def losses(places):
        return (model(x[places])[:, 0] - y[places]) ** 2

    vector = torch.randn(sum(p.numel() for p in parameters), dtype=torch.float64)
    product = hessian_times(losses, parameters, places, vector)
    step = 1e-5
    slopes = []
    for sign in (1, -1):
        with torch.no_grad():
            for p, part in zip(parameters, vector.split([p.numel() for p in parameters]), strict=True):
                p += sign * step * part.reshape(p.shape) * (1 if sign > 0 else 2)
        slopes.append(gradient(losses, parameters, places))
    assert torch.allclose(product, (slopes[0] - slopes[1]) / (2 * step), atol=1e-6)


def test_a_linear_loss_has_no_curvature():
    weight = nn.Parameter(torch.ones(3))
    x = torch.randn(5, 3)
    assert torch.equal(
        hessian_times(lambda places: x[places] @ weight, [weight], torch.arange(5), torch.ones(3)), torch.zeros(3)
    )
    values, _, residuals = top_eigenpairs(lambda v: 0.0 * v, torch.ones(3), 2, 3)
    assert values.tolist() == [0.0, 0.0]
    assert residuals.tolist() == [0.0, 0.0]


def test_a_model_without_parameters_is_refused():
    with pytest.raises(ValueError, match="Found none in the model"):
        trained(nn.Identity())
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1).double())
    with pytest.raises(ValueError, match="of one type on one device"):
        trained(mixed)


def test_gradients_of_the_training_stay():
    model, _, _, losses = small()
    for p in model.parameters():
        p.grad = torch.full_like(p, 7.0)
    gradient(losses, trained(model), torch.arange(30))
    assert all(bool((p.grad == 7.0).all()) for p in model.parameters())
