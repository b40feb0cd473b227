"""Delivery: the model that a law hands over in place of the trained one."""

from __future__ import annotations

from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.model_law import ModelLaw
from tiltmeter.interventions.shared.group_scores import GroupScores


def delivered(law: ModelLaw, held_out: GroupedData | None, model: nn.Module) -> nn.Module:
    """What the law makes of the model; it should have the same parameters, so that it can take the model's place."""
    found = law.deliver(model, held_out)
    name = type(law).__name__
    if not isinstance(found, nn.Module):
        raise TypeError(f"`deliver` of {name} should return a torch.nn.Module. Found {type(found).__name__}.")
    if law.by_group:
        if not isinstance(found, GroupScores):
            raise TypeError(f"`deliver` of {name} should return GroupScores. Found {type(found).__name__}.")
        return found
    shapes = ({key: tuple(value.shape) for key, value in one.state_dict().items()} for one in (model, found))
    if next(shapes) != next(shapes):
        raise ValueError(f"`deliver` of {name} should return a model with the same parameters: fold changes into them.")
    return found
