"""ProjectionDependence: the few directions of input space on which decisions depend (Morwani et al., 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.randomised import PARTS
from tiltmeter_lab.measures.shared.exchanged_features import Kept, Subspace, kept, permutation
from tiltmeter_lab.measures.shared.weight_matrices import check_finite


class Search(Protocol):
    """Returns orthonormal rows (rank, d), chosen on these points only; `passes` is its cost."""

    def __call__(self, seen: SeenModel, places: np.ndarray, rank: int) -> Tensor: ...

    def passes(self, rank: int) -> float: ...


@dataclass(frozen=True)
class FirstLayer:
    """The directions to which the first weight matrix of the model responds most: its top right singular vectors.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> lab.measures.ProjectionDependence(search=lab.measures.FirstLayer()).search
    FirstLayer()
    """

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

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> lab.measures.ProjectionDependence(ranks=(1,), search=lab.measures.Learned(steps=40)).search.steps
    40

    The loss compares with the model's own decision on the first point, so that the search explains the model and not
    the data. Adam optimises a matrix whose QR factor is the basis. This is a local search, so the true rank may be
    lower.

    Args:
        steps: Steps of the search.
        lr: Learning rate of the search.
        batch: Pairs of points at each step.
        seed: Seed of the first directions and of the pairs.
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


@dataclass(frozen=True)
class ProjectionDependence:
    """How few directions the decisions depend on: `dependence_rank` k, and `projection_accuracy` for each rank tried.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> data = tm.GroupedData(torch.eye(3).repeat(40, 1), [0, 1, 1] * 40, ["all"] * 120)
    >>> model = torch.nn.Linear(3, 1)
    >>> model.weight.data, model.bias.data = torch.tensor([[-1.0, 1.0, 1.0]]), torch.zeros(1)
    >>> float(lab.measure(ProjectionDependence(), model, data)["dependence_rank"])  # one direction decides
    1.0

    For every rank, `search` finds a subspace on one half of the points. On the other half, points keep their component
    in the subspace and take the rest from other points ("rest"), or the other way round ("set"); "none" is the
    unchanged points. `dependence_rank` is the smallest rank tried at which exchanging the rest keeps the share `keep`
    of the accuracy above chance, evaluated on the half used for the search; d if there is none. Its null value is the
    same with random directions; `projection_accuracy_random` shows those at every rank.

    What it does not mean: compare k with d, because near d every subspace is sufficient. A low rank does *not* mean
    that the rest of the input is uninformative, or that the weights have that rank: a network may use one direction
    with a first layer of stable rank 3. `FirstLayer` ranks directions by the size of weights, which is not importance,
    so the rank found is an upper bound.

    Args:
        ranks: Numbers of directions that are tried.
        search: Finds a subspace of each rank.
        keep: Share of the accuracy above chance that should stay.
        seed: Seed of the random draws, the same at every evaluation.
    """

    title: ClassVar[str] = "number of input directions that the decisions depend on"
    takes: ClassVar[str] = (
        "a model that decides, real inputs; FirstLayer needs a first matrix on the whole input, so convolutions and "
        "transformers need search=Learned()"
    )
    exact: ClassVar[str] = "a function of k directions: rank k if the search finds them"
    absent: ClassVar[str] = "large initialisation (lazy): many directions stay in use"
    weighs: ClassVar[bool] = True

    ranks: tuple[int, ...] = (1, 2, 4, 8, 16)
    search: Search = FirstLayer()
    keep: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.ranks or min(self.ranks) < 1 or list(self.ranks) != sorted(set(self.ranks)):
            raise ValueError(f"`ranks` should be ascending numbers from 1. Found ranks = {self.ranks}.")
        if not callable(self.search):
            raise TypeError(f"`search` should be FirstLayer() or Learned(). Found {type(self.search).__name__}.")
        if not 0 < self.keep <= 1:
            raise ValueError(f"`keep` should be a share above 0. Found keep = {self.keep}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen, d, ranks = snapshot.model, *self._size(snapshot)
        order = np.random.default_rng(self.seed).permutation(len(seen.x))
        choose, judge = np.array_split(order, 2)
        if len(judge) < 2:
            raise ValueError(
                f"The search needs one half of the points, the evaluation the other: at least 4. Found {len(seen.x)}."
            )
        random = torch.linalg.qr(torch.as_tensor(np.random.default_rng([self.seed, 1]).normal(size=(d, ranks[-1]))))[0]
        accuracy, null, other = (np.zeros((len(ranks), 3)) for _ in range(3))
        found, found_random = d, d
        for place in range(len(ranks) - 1, -1, -1):
            rank = ranks[place]
            spaces = self.search(seen, choose, rank), random.T[:rank]
            own, drawn = (self._cases(snapshot, rows, judge) for rows in spaces)
            accuracy[place] = [case.accuracy for case in own]
            null[place] = [case.chance for case in own]
            other[place] = [case.accuracy for case in drawn]
            enough = [self._enough(self._cases(snapshot, rows, choose)) for rows in spaces]
            found, found_random = (rank if yes else k for yes, k in zip(enough, (found, found_random), strict=True))
        coords = {"rank": np.array(ranks), "part": PARTS}
        ranked = {
            "rank": found,
            "rank_null": found_random,
            "rank_share": found / d,
            "rank_share_null": found_random / d,
        }
        words = {
            "rank": "smallest rank tried whose directions are sufficient",
            "rank_null": "the same with random directions",
            "rank_share": "that rank divided by the number of inputs",
            "rank_share_null": "the same with random directions",
        }
        readings = {
            "projection_accuracy": (accuracy, "accuracy with directions found, or the rest, from other points"),
            "projection_accuracy_null": (null, "accuracy of random decisions with the same frequencies"),
            "projection_accuracy_random": (other, "the same with equally many random directions"),
        }
        return {
            **{
                f"dependence_{name}": snapshot.reading(
                    f"dependence_{name}", np.asarray(float(value)), {}, long_name=words[name], better="neither"
                )
                for name, value in ranked.items()
            },
            **{
                name: snapshot.reading(name, values, coords, long_name=meaning, better="neither", null="chance")
                for name, (values, meaning) in readings.items()
            },
        }

    def passes(self, snapshot: Snapshot) -> float:
        """Three passes over each half of the points, for the directions found and for random ones, and the search."""
        _, ranks = self._size(snapshot)
        return sum(6.0 + self.search.passes(rank) for rank in ranks)

    def _size(self, snapshot: Snapshot) -> tuple[int, tuple[int, ...]]:
        d = math.prod(snapshot.model.x.shape[1:])
        return d, tuple(rank for rank in self.ranks if rank <= d) or (d,)

    def _cases(self, snapshot: Snapshot, rows: Tensor, places: np.ndarray) -> tuple[Kept, Kept, Kept]:
        space, x = Subspace(rows=rows), snapshot.model.x[torch.as_tensor(places)]
        other = x[permutation(len(x), self.seed)]
        changed = (x, space.exchanged(x, other), space.exchanged(other, x))
        first, second, third = (kept(snapshot, points, places) for points in changed)
        return first, second, third

    def _enough(self, cases: tuple[Kept, Kept, Kept]) -> bool:
        plain, _, rest = cases
        above = plain.accuracy - plain.chance
        return above > 0 and rest.accuracy - rest.chance >= self.keep * above
