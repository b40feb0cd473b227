"""Stability: a training that will diverge by the noise of its batches is warned of before it starts."""

from __future__ import annotations

import numpy as np
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.nested import Nested, Streamed
from tiltmeter.losses import Square
from tiltmeter.modules.forward import bare
from tiltmeter.recipe.batch_limit import batch_limit
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.shown_text import warn_caller

#: More columns than this, or fewer steps, are not looked at: the limit would take longer than it is worth.
MOST_COLUMNS, FEWEST_STEPS = 500, 50
#: Rows that the limit is found from, at most.
MOST_ROWS = 50_000


def warn_of_batch_limit(model: nn.Module, data: GroupedData, recipe: Recipe) -> float | None:
    """Warn if plain SGD of a linear model with the squared loss is beyond its limit; the limit, where it is known."""
    layer = only_layer(bare(model))
    if layer is None or not _plain(recipe, len(data)) or isinstance(data.x, (Nested, Streamed)):
        return None
    x = data.x.detach().cpu().numpy() if hasattr(data.x, "detach") else np.asarray(data.x)
    rows = x.reshape(len(x), -1).astype(float)
    if rows.shape[1] > MOST_COLUMNS:
        return None
    mass = np.ones(len(rows)) if data.weights is None else data.weights.astype(float)
    if len(rows) > MOST_ROWS:
        chosen = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
        rows, mass = rows[chosen], mass[chosen]
    if layer.bias is not None:
        rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    limit = batch_limit(rows, recipe.batch_size(len(data)), mass)
    assert recipe.lr is not None
    if recipe.lr >= limit:
        warn_caller(
            f"`lr` should stay below {limit:.3g}, from which the noise of batches of {recipe.batch_size(len(data))} "
            f"makes this squared loss diverge. Found lr = {recipe.lr:g}: take a smaller one, or larger batches."
        )
    return limit


def only_layer(model: nn.Module) -> nn.Linear | None:
    """The one layer of a linear model; None for any other model."""
    layers = [layer for layer in model.modules() if not isinstance(layer, (nn.Sequential, nn.Flatten))]
    return layers[0] if len(layers) == 1 and isinstance(layers[0], nn.Linear) else None


def _plain(recipe: Recipe, points: int) -> bool:
    """Whether the theory of the limit holds: SGD of a squared loss at one rate, and nothing else."""
    nothing = recipe.optimiser is None and recipe.schedule is None and not recipe.momentum and not recipe.clip
    whole = recipe.weights is None and recipe.drawn is None and not recipe.interventions
    small = recipe.batch_size(points) < points and recipe.total_steps(points) >= FEWEST_STEPS
    return nothing and whole and small and recipe.lr is not None and isinstance(recipe.loss, Square)
