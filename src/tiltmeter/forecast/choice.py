"""choose: the best route for a recipe that is affordable, chosen before any work is done."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.cost import Work, coordinates_cost, kernel_cost, twin_cost, work_of
from tiltmeter.forecast.inputs import checked_data, checked_model
from tiltmeter.forecast.kernel.question import check_before_work
from tiltmeter.forecast.laws import check_coordinate_laws, check_twin_laws
from tiltmeter.forecast.linear_in_weights import linear_head
from tiltmeter.forecast.optimiser_kind import kind_of
from tiltmeter.forecast.route import Coordinates, Kernel, Twin
from tiltmeter.forecast.twin.cut import Cutter
from tiltmeter.forecast.twin.representative import sample_of
from tiltmeter.forecast.twin.side_by_side import chain
from tiltmeter.measures.answers import trial_scores
from tiltmeter.notebook_text import NotebookText
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import Read, bare, like_weights
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.optimisers import check_alike
from tiltmeter.recipe.recipe import Recipe, checked_recipe

#: A forecast is affordable at this share of the cost of training, or below this many seconds.
HALF, SECONDS = 0.5, 10.0
#: Networks of more hidden dimensions than this, none wider than that, keep half of their units.
DEEP, NARROW = 2, 256

LINEAR = "this optimiser, where all weights that learn act linearly"
#: What a network does otherwise in training than in evaluation, which a forecast by coordinates leaves out.
OTHERWISE = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)

Route = Kernel | Coordinates | Twin


@dataclass(frozen=True)
class Choice(NotebookText):
    """A route, why it was chosen, and its cost: seconds on one core, and as a share of the training.

    Both are estimated, not measured, and right to about a factor of two. `cutter` is what was learned of the network on
    the way, for the forecast that follows.
    """

    route: Route
    why: str
    seconds: float
    of_training: float
    cutter: Cutter | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        said = f"{self.route!r}: {self.why}. About {self.seconds:.2g} s, {self.of_training:.0%} of the training"
        return f"{said}." if self.of_training < 1.0 else f"{said}: the training itself costs less."

    def to_json(self) -> dict[str, Any]:
        return {"why": self.why, "seconds": self.seconds, "of_training": self.of_training}


def choose(
    model: nn.Module, train: GroupedData, look: GroupedData | None, recipe: Recipe, *, read: Read | None = None
) -> Choice:
    """The route that `forecast` takes where none is given, and its cost in advance.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> data = GroupedData(rng.normal(size=(400, 5)), rng.choice([0, 1], 400), rng.choice(["a", "b"], 400))
    >>> choose(nn.Linear(5, 1), *data.split(0.5), Recipe(lr=0.5, steps=100)).route
    Kernel(sample=2500, seed=0, horizon=True, real_steps=0)

    SGD without an order of batches: the kernel, which gives the mean over orders. With an order, or with another
    optimiser: twins, which learn features and follow the run's own batches; then coordinates. Coordinates come first
    where only a linear head learns, on a frozen backbone: there they are exact. The first of them that knows the recipe
    and costs at most half of the training, or ten seconds, is taken; else the cheapest.

    One twin follows the run's own batches. Where these are not known there are two if both train in one pass, and two
    replicas of coordinates, each with batches of its own.
    """
    train, look = checked_data(train, look)
    own = deep_copy(bare(checked_model(model)))
    steps, batch = checked_recipe(recipe).total_steps(len(train)), recipe.batch_size(len(train))
    few = like_weights(own, train.tensors()[0][:2])
    with untouched(own):
        trial = trial_scores(own, few, read)
    outputs = trial.shape[1] if trial.ndim == 2 else 1
    whole = work_of(own, few)
    training = whole.training(steps, batch, len(look))
    points = len(train)
    lowered = lowered_recipe(recipe, train)
    cutter = Cutter(own, like_weights(own, sample_of(train.tensors()[0])), read)
    head: int | None = None
    found: dict[str, tuple[Route, str, float]] = {}
    refused: list[str] = []
    try:
        _check_kernel(recipe, train, own)
        kernel = Kernel()
        why = "SGD without an order of batches, whose mean the kernel gives"
        found["kernel"] = kernel, why, kernel_cost(kernel, whole, points, len(look), outputs)
    except (ValueError, TypeError) as error:
        refused.append(str(error))
    enough = max(HALF * training, SECONDS)
    if recipe.order is None and "kernel" in found and found["kernel"][2] <= enough:
        return _choice(*found["kernel"], training)
    try:
        kind_of(recipe.make_optimiser, list(own.parameters()), "A forecast")
        head = linear_head(own, few, read)
        narrow = None if head else _twin(own, cutter, whole, few, recipe.order is not None)
        check_twin_laws(lowered)
        if narrow is not None:
            twin, work, stacked = narrow
            why = "the run's own batches and features" if recipe.order is not None else "this optimiser, and features"
            found["twin"] = twin, why, twin_cost(twin, whole, work, steps, batch, points, len(look), stacked)
        check_coordinate_laws(lowered)
        sampled = Coordinates(max(Coordinates().count, head or 0), replicas=1 if recipe.order is not None else 2)
        cost = coordinates_cost(sampled, whole, steps, batch, points, len(look), outputs)
        why = "this optimiser, on a network that twins do not make cheaper"
        exact = not any(isinstance(module, OTHERWISE) for module in own.modules())
        found["coordinates"] = sampled, (f"{LINEAR}{': exact' if exact else ''}" if head else why), cost
    except (ValueError, TypeError) as error:
        refused.append(str(error))
    if not found:
        raise ValueError(refused[-1])
    first = ["kernel", "twin"] if recipe.order is None else ["twin", "kernel"]
    order = [name for name in (["coordinates", *first] if head else [*first, "coordinates"]) if name in found]
    chosen = next((name for name in order if found[name][2] <= enough), None)
    if chosen is None:
        chosen = min(order, key=lambda name: found[name][2])
    return replace(_choice(*found[chosen], training), cutter=cutter)


def _choice(route: Route, why: str, seconds: float, training: float) -> Choice:
    return Choice(route, why, seconds, seconds / max(training, 1e-9))


def _check_kernel(recipe: Recipe, train: GroupedData, model: nn.Module) -> None:
    """Refuse what the kernel cannot forecast."""
    check_before_work(recipe, train)
    if recipe.optimiser is not None:
        weights = list(model.parameters())
        check_alike(recipe.make_optimiser(weights), weights)


def _twin(model: nn.Module, cutter: Cutter, whole: Work, few: Tensor, known: bool) -> tuple[Twin, Work, bool] | None:
    """Twins of the share that suits this network, if one does less than half of its multiplications; its work, and
    whether twins train in one stack. `known` is whether the batches are.
    """
    kinds = (nn.modules.conv._ConvNd, nn.MultiheadAttention, nn.RNNBase)
    share = 1 / 4 if any(isinstance(module, kinds) for module in model.modules()) else 1 / 8
    try:
        found = cutter.by_chance(share)
        sizes = [count for _, count in found.cut.values()]
        if share == 1 / 8 and len(sizes) > DEEP and max(sizes) <= NARROW:
            share = 1 / 2
            found = cutter.by_chance(share)
    except ValueError:
        return None
    work = work_of(found.model, few)
    if not found.cut or (share < 1 / 2 and work.multiplications > whole.multiplications / 2):
        return None
    # A second twin has batches of its own where these are not known; where both do not train in one pass, it would cost
    # as much as the first.
    stacked = chain(found.model) is not None
    return Twin(share=share, count=1 if known or not stacked else 2), work, stacked
