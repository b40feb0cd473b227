"""DiffROAR: whether input gradients of a network highlight what tells the label (Shah, Jain and Netrapalli, 2021)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn


def signal_points(d: int, points: int, seed: int, noise: float = 0.1) -> tuple[Tensor, Tensor, np.ndarray]:
    """x = y e_j + noise with a random coordinate j for every point: only that coordinate tells the label -1 or +1.

    >>> x, y, place = signal_points(5, 100, 0, noise=0.0)
    >>> bool((x[torch.arange(100), torch.as_tensor(place)] == y).all())
    True
    """
    rng = np.random.default_rng([seed, 0])
    y, place = rng.choice([-1.0, 1.0], points), rng.integers(d, size=points)
    x = noise * rng.normal(size=(points, d))
    x[np.arange(points), place] += y
    return torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32), place


def fitted(
    make: Callable[[], nn.Module], x: Tensor, y: Tensor, steps: int, lr: float, seed: int, radius: float = 0.0
) -> nn.Module:
    """A network trained on all points with the logistic loss; with a radius, on the worst points within it (L2)."""
    torch.manual_seed(seed)
    model = make()
    rule = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        seen = attacked(model, x, y, radius) if radius else x
        loss = nn.functional.softplus(-y * model(seen).squeeze(-1)).mean()
        rule.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        rule.step()
    return model


def attacked(model: nn.Module, x: Tensor, y: Tensor, radius: float, steps: int = 5) -> Tensor:
    """Points moved uphill in the loss, at most as far as the radius."""
    moved = torch.zeros_like(x)
    for _ in range(steps):
        slope = input_gradient(model, x + moved, y)
        moved = moved + radius / 2 * slope / slope.norm(dim=1, keepdim=True).clamp_min(1e-12)
        moved = moved * (radius / moved.norm(dim=1, keepdim=True).clamp_min(radius))
    return (x + moved).detach()


def input_gradient(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Gradient of the loss of every point with respect to its input."""
    points = x.detach().requires_grad_()
    loss = nn.functional.softplus(-y * model(points).squeeze(-1)).sum()
    return torch.autograd.grad(loss, points)[0]


def kept(x: Tensor, size: Tensor, count: int, top: bool) -> Tensor:
    """Every point with only the coordinates of its largest (or smallest) sizes; the others are the mean of the data.

    >>> kept(torch.tensor([[1.0, 2.0, 3.0]] * 2), torch.tensor([[0.1, 0.9, 0.5]] * 2), 1, top=False)
    tensor([[1., 2., 3.],
            [1., 2., 3.]])
    """
    places = size.argsort(dim=1, descending=top)[:, :count]
    mask = torch.zeros_like(x, dtype=torch.bool).scatter_(1, places, True)
    return torch.where(mask, x, x.mean(0))


def diffroar(
    make: Callable[[], nn.Module],
    sizes: tuple[Tensor, Tensor],
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    count: int,
    fit: Callable[[Callable[[], nn.Module], Tensor, Tensor], nn.Module],
) -> float:
    """Accuracy of a new network on points that keep their top coordinates, less that with their bottom ones.

    Above 0: the sizes (gradients) highlight what tells the label. Below 0: they highlight what does not.
    """
    found = []
    for top in (True, False):
        shown, held = (kept(part[0], size, count, top) for part, size in zip((train, test), sizes, strict=True))
        model = fit(make, shown, train[1])
        with torch.no_grad():
            found.append(float((model(held).squeeze(-1).sign() == test[1]).float().mean()))
    return found[0] - found[1]
