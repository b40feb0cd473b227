"""Searches for the few directions of input space on which the decisions of a model depend."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.shared.weight_matrices import check_finite


class Search(Protocol):
    """Returns orthonormal rows (rank, d), chosen on these points only; `passes` is its cost."""

    def __call__(self, seen: SeenModel, places: np.ndarray, rank: int) -> Tensor: ...

    def passes(self, rank: int) -> float: ...


@dataclass(frozen=True)
class FirstLayer:
    """The directions to which the first weight matrix of the model responds most: its top right singular vectors."""

    def __call__(self, seen: SeenModel, places: np.ndarray, rank: int) -> Tensor:  # noqa: ARG002
        weight = first_matrix(seen).detach().double().cpu()
        check_finite("the first layer", weight)
        _, _, directions = torch.linalg.svd(weight, full_matrices=True)
        return torch.as_tensor(directions[:rank])

    def passes(self, rank: int) -> float:  # noqa: ARG002
        return 0.0


@dataclass(frozen=True)
class Learned:
    """Directions found by gradient descent: if a point keeps them and takes the rest from another point, its decision
    stays.

    The loss compares with the model's own decision on the first point, so that the search explains the model and not
    the data. Adam optimises a matrix whose QR factor is the basis. This is a local search, so the true rank may be
    lower.
    """

    steps: int = 100
    lr: float = 0.1
    batch: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 2 or not self.lr > 0:
            raise ValueError(
                "`steps`, `batch` and `lr` should be positive, `batch` at least 2. "
                f"Found {self.steps}, {self.batch}, {self.lr}."
            )

    def __call__(self, seen: SeenModel, places: np.ndarray, rank: int) -> Tensor:
        x = seen.x[torch.as_tensor(places)]
        if not x.is_floating_point():
            raise TypeError(f"Tokens have no directions to search for. Found x of type {x.dtype}.")
        rng = np.random.default_rng(self.seed)
        wanted = torch.as_tensor(seen.decide(seen.scores(x))).to(seen.y.dtype)
        free = torch.as_tensor(rng.normal(size=(math.prod(x.shape[1:]), rank)), dtype=x.dtype).requires_grad_()
        adam = torch.optim.Adam([free], lr=self.lr)
        for _ in range(self.steps):
            one, two = (torch.as_tensor(rng.integers(0, len(x), min(self.batch, len(x)))) for _ in range(2))
            with torch.enable_grad():
                rows = torch.linalg.qr(free)[0].T
                away = (x[one] - x[two]).flatten(1)
                mixed = x[two] + ((away @ rows.T) @ rows).reshape(x[one].shape)
                loss = seen.losses(seen.pass_once(mixed), wanted[one]).mean()
                (free.grad,) = torch.autograd.grad(loss, [free])
            adam.step()
        return torch.as_tensor(torch.linalg.qr(free.detach())[0].T.double())

    def passes(self, rank: int) -> float:  # noqa: ARG002
        return 3.0 * self.steps


def first_matrix(seen: SeenModel) -> Tensor:
    """The weight matrix that acts on the whole point: that of the first module with weights that is called.

    >>> import tiltmeter as tm
    >>> data = tm.GroupedData(np.ones((60, 3)), np.arange(60) % 2, "label")
    >>> model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    >>> first_matrix(tm.Probe(model, data).snapshot().model).shape
    torch.Size([5, 3])
    """
    d = math.prod(seen.x.shape[1:])
    called: list[Tensor] = []

    # The order in which modules are registered is no guide: some models register their head first.
    def note(module: nn.Module, _: object) -> None:
        called.extend(p for p in module.parameters(recurse=False) if p.ndim >= 2)

    hooks = [module.register_forward_pre_hook(note) for module in seen.module.modules()]
    try:
        seen.scores(seen.x[:1])
    finally:
        for hook in hooks:
            hook.remove()
    if called and called[0].ndim == 2 and called[0].shape[1] == d:
        return called[0]
    raise ValueError(
        f"The first weights should act on all {d} numbers of a point, as in a fully connected network: for others "
        "search with Learned()."
    )
