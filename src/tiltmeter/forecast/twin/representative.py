"""Representative units: those that a twin keeps are chosen to stand for those that it loses.

A narrow network learns as the wide one does as far as averages over its units agree with averages over all: those of
products u_i(x) u_i(x') of what a unit i does at two points, whose mean over units is a kernel of the layer. A unit
passes something on, takes something in and moves the scores, and the tangent kernel is made of the three. Units drawn
by chance agree up to one over the root of their number. Taken one after the other, each so that the average so far
comes nearest to that of all (herding: Welling 2009; Chen, Welling and Smola 2010), they agree better.

On 69 pairs of groups of development tasks (MLPs, an eighth of the units) the gap told by two twins of units drawn by
chance was off by .098 of its range in the mean, by one twin of representative units .076, by two .069. On 33 of
convolutions and attention (a quarter): one by chance .186, one representative .169, two .150 and .146.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.forecast.twin.layers import Coupled
from tiltmeter.forecast.twin.untrained import unfused
from tiltmeter.modules.forward import Read, flat_scores

#: Units are compared at so many points: fewer of large points, whose numbers together should not exceed the third of
#: these, but of fewer than the second nothing is concluded.
POINTS, FEW, NUMBERS = 64, 16, 2**21
#: Of all places in these points, as the pixels of images, so many are kept at the most.
PLACES = 4096
#: Pairs of places whose products are compared, for each thing that units do: so many products of all units at the
#: most, but at least and at the most so many pairs.
PRODUCTS, LEAST, MOST = 2**17, 128, 512
#: At every turn so many of the units that are left are tried.
TRIED = 32

_TAKES = (nn.Linear, nn.modules.conv._ConvNd, nn.MultiheadAttention, nn.RNNBase)


class UnitResponses:
    """What the units of every dimension of a network do at some points, from one pass forward and one back."""

    def __init__(self, network: nn.Module, dimensions: Sequence[Coupled], x: Tensor, read: Read | None) -> None:
        self._seen: list[list[np.ndarray]] = [[] for _ in dimensions]
        if len(x) >= FEW:
            _watch(network, dimensions, x, read, self._seen)

    def chosen(self, number: int, dimension: Coupled, count: int, rng: np.random.Generator) -> np.ndarray:
        """So many representative units of a dimension, in order; by chance where nothing was seen of them."""
        products = [one for rows in self._seen[number] if (one := _products(rows, rng)) is not None]
        if not products:
            return dimension.chosen(count, drawn(rng))
        joined = np.concatenate(products, 1)
        return dimension.chosen(count, lambda group, some: herded(joined[group], some, rng))


def drawn(rng: np.random.Generator) -> Callable[[slice, int], np.ndarray]:
    """So many units of a group by chance."""
    return lambda group, count: rng.permutation(group.stop - group.start)[:count]


def sample_of(x: Tensor) -> Tensor:
    """The points at which units are compared, drawn from all: neighbours may be alike."""
    count = min(POINTS, max(FEW, NUMBERS // max(1, x[:1].numel())))
    places = np.sort(np.random.default_rng(0).permutation(len(x))[:count])
    return x[torch.as_tensor(places)]


def herded(products: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """So many rows whose average comes near to that of all rows.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(64, 10))
    >>> off = rows[herded(rows, 16, rng)].mean(0) - rows.mean(0)
    >>> bool(np.linalg.norm(off) < 0.5 * np.linalg.norm(rows[:16].mean(0) - rows.mean(0)))
    True

    The first is drawn by chance, and so are the rows that are tried at every turn: another `rng` gives other rows.
    """
    target, squares = products.mean(0), np.einsum("ij,ij->i", products, products)
    left = rng.permutation(len(products))
    missing, chosen = np.zeros_like(target), list[int]()
    for _ in range(count):
        missing += target
        tried = left[: TRIED if chosen else 1]
        best = int(np.argmin(squares[tried] - 2.0 * (products[tried] @ missing)))
        chosen.append(int(tried[best]))
        missing -= products[tried[best]]
        left = np.concatenate([left[len(tried) :], np.delete(tried, best)])  # the next turn begins with others
    return np.asarray(chosen)


def _products(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Products at pairs of places, scaled so that everything that units do counts alike; None if they do not differ."""
    pairs = min(MOST, max(LEAST, PRODUCTS // len(rows)))
    first, second = rng.integers(rows.shape[1], size=(2, pairs))
    with np.errstate(over="ignore", invalid="ignore"):  # a network that has diverged says nothing
        found = rows[:, first] * rows[:, second]
        spread = float(np.sqrt(found.var(0).sum()))
    return found / spread if 0.0 < spread < np.inf else None


def _watch(
    network: nn.Module, dimensions: Sequence[Coupled], x: Tensor, read: Read | None, seen: list[list[np.ndarray]]
) -> None:
    given: dict[int, Tensor] = {}
    hooks = []
    for number, one in enumerate(dimensions):
        hooks.append(one.root.register_forward_hook(_noted(given, number)))
        takers = [module for module, out in one.members if not out and isinstance(module, _TAKES)]
        for module in takers:
            keep = _kept(seen[number], one.count, module)
            hooks.append(module.register_forward_pre_hook(lambda _, inputs, keep=keep: keep(inputs[0])))
    try:
        with torch.enable_grad(), unfused(network):
            scores = flat_scores(network(x.clone()), len(x), read)
            signs = torch.randint(2, scores.shape, generator=torch.Generator().manual_seed(0)).to(scores) * 2.0 - 1.0
            numbers = list(given)
            moves = torch.autograd.grad((scores * signs).sum(), [given[n] for n in numbers], allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
    for number, move in zip(numbers, moves, strict=True):
        for found in (given[number], move):
            if found is not None:
                _kept(seen[number], dimensions[number].count, dimensions[number].root)(found)


def _noted(given: dict[int, Tensor], number: int) -> Callable[..., None]:
    def note(_module: nn.Module, _inputs: Any, output: Any) -> None:
        given[number] = output[0] if isinstance(output, tuple) else output

    return note


def _kept(seen: list[np.ndarray], count: int, module: nn.Module) -> Callable[[Tensor], None]:
    """Appends what is found as rows, one for each unit; what has another number of units is passed over."""

    def keep(found: Tensor) -> None:
        dim = 1 if isinstance(module, nn.modules.conv._ConvNd) else found.ndim - 1
        if found.ndim > 1 and found.shape[dim] == count:
            rows = found.detach().movedim(dim, 0).reshape(count, -1)
            if rows.shape[1] > PLACES:
                draw = torch.Generator().manual_seed(0)
                rows = rows[:, torch.randperm(rows.shape[1], generator=draw)[:PLACES].to(rows.device)]
            seen.append(rows.float().cpu().numpy())

    return keep
