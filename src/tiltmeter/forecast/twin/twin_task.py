"""TwinTask: a network and its data, checked once for all recipes whose training its twins are to foretell."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.known_labels import check_labels_known
from tiltmeter.forecast.inputs import checked_classes, checked_data, checked_model, say_held_out
from tiltmeter.forecast.route import Twin
from tiltmeter.forecast.twin.cut import Cutter
from tiltmeter.forecast.twin.representative import sample_of
from tiltmeter.measures.answers import trial_scores
from tiltmeter.measures.output_kind import gives_probabilities
from tiltmeter.passes.deep_copy import deep_copy
from tiltmeter.passes.forward import bare, like_weights
from tiltmeter.passes.untouched import untouched
from tiltmeter.recipe.watch import Watch


@dataclass(frozen=True, eq=False)
class TwinTask:
    """`own` is a copy of the network; `x` are the points to train on and to look at, as its weights take them.

    It gives `outputs` scores for a point, which are probabilities if `sure`. `cut` makes narrow networks of it.
    """

    own: nn.Module
    cut: Cutter
    train: GroupedData
    look: GroupedData
    x: tuple[Tensor, Tensor]
    outputs: int
    sure: bool
    route: Twin
    watch: Watch


def twin_task(
    model: nn.Module,
    train: GroupedData,
    look: GroupedData | None,
    route: Twin,
    watch: Watch,
    cutter: Cutter | None = None,
) -> TwinTask:
    """Check the network and the data; a part of `train` is held out if `look` is None.

    `cutter` is given where the network, or an equal one, was traced before.
    """
    held_out = look is None
    train, look = checked_data(train, look)
    check_labels_known(train, look)
    if held_out:
        say_held_out()
    own = deep_copy(bare(checked_model(model)))
    x = _points(own, train), _points(own, look)
    with untouched(own):
        trial = trial_scores(own, x[0][:8], watch.read)
        sure = gives_probabilities(own, x[0][:8], watch.read)
    outputs = trial.shape[1] if trial.ndim == 2 else 1
    for data in (train, look):
        checked_classes(data, outputs)
    cutter = cutter or Cutter(own, sample_of(x[0]), watch.read)
    return TwinTask(own, cutter, train, look, x, outputs, sure, route, watch)


def _points(model: nn.Module, data: GroupedData) -> Tensor:
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    points: Tensor = data.tensors(like.dtype)[0]
    return like_weights(model, points)
