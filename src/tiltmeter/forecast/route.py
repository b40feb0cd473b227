"""Routes: how a forecast is calculated, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kernel:
    """The exact linearisation of the network at its initial weights, from the tangent kernel of `sample` points.

    >>> Kernel(sample=500)
    Kernel(sample=500, seed=0, horizon=True, real_steps=0)

    `seed` chooses the points. `horizon=False` skips the tests of how far to trust the forecast; `real_steps` allows
    that many steps of plain SGD on a copy, to see how fast the kernel turns.
    """

    sample: int = 2500
    seed: int = 0
    horizon: bool = True
    real_steps: int = 0


@dataclass(frozen=True)
class Coordinates:
    """The linearised network on a sample of its weights, moved by the user's own optimiser on real mini-batches.

    >>> Coordinates(count=1000)
    Coordinates(count=1000, replicas=1, seed=0)

    About `count` weights are chosen by `seed`, from every tensor; a step costs as many multiplications for each point
    of the batch, however large the network. Every replica has weights of its own, and batches too where the run's order
    is not known. It knows no features that the network learns; gaps between groups are told better than the level.
    """

    count: int = 4000
    replicas: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        _check_integers(self, count=1, replicas=1, seed=0)


@dataclass(frozen=True)
class Twin:
    """Narrow networks cut from the user's own and trained in its place: features, any optimiser, the run's batches.

    >>> Twin(share=1 / 4)
    Twin(share=0.25, count=2, seed=0)

    A twin keeps `share` of the units of every hidden dimension (at least 8, and two heads of attention), and learns as
    the wide network does by the maximal-update rule; `count` of them are trained. Units are chosen to represent all of
    them; `seed` varies the choice. Its answer is f0(x) + twin(x) - twin0(x), f0 being the untrained network. With
    `share=1` it is the training itself.
    """

    share: float = 1 / 8
    count: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, (int, float)) or not 0 < self.share <= 1:
            raise ValueError(f"`share` should be a share above 0, up to 1. Found share = {self.share!r}.")
        _check_integers(self, count=1, seed=0)


def chosen(model: Any, train: Any, look: Any, recipe: Any, *, read: Any = None) -> Any:
    """The route that `forecast` would take for this recipe, why, and its cost in advance (`Choice`)."""
    from tiltmeter.forecast.choice import choose

    return choose(model, train, look, recipe, read=read)


def _check_integers(route: object, **least: int) -> None:
    for name, lowest in least.items():
        value = getattr(route, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise ValueError(f"`{name}` should be an integer from {lowest}. Found {name} = {value!r}.")
