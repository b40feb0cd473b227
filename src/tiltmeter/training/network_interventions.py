"""NetworkInterventions: the interventions of a recipe by kind, checked against the data before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import (
    BatchIntervention,
    DataIntervention,
    ModelIntervention,
    PointIntervention,
    StepIntervention,
    TermIntervention,
)
from tiltmeter.interventions.routes import refuse_elsewhere
from tiltmeter.measures.point_loss import PointLoss
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.recipe.sampling import GivenOrder
from tiltmeter.shown_text import percent

#: An intervention that compares groups within a batch may miss one in this share of batches.
MISSING = 0.05


@dataclass(frozen=True)
class NetworkInterventions:
    """What a training has to apply, and where."""

    data: tuple[DataIntervention, ...] = ()
    batch: tuple[BatchIntervention, ...] = ()
    steering: tuple[GroupIntervention | PointIntervention, ...] = ()
    step: StepIntervention | None = None
    model: ModelIntervention | None = None

    def check_loss(self, loss: PointLoss) -> None:
        """Refuse a loss that an intervention cannot read."""
        for law in (*self.steering, *((self.model,) if self.model is not None else ())):
            name = type(law).__name__
            if isinstance(law, PointIntervention) and law.log_loss and loss.link not in ("sigmoid", "softmax"):
                raise ValueError(f"{name} needs the logistic loss or cross-entropy. Found {loss.definition}.")
            if isinstance(law, ModelIntervention) and law.logits and loss.link not in ("sigmoid", "softmax"):
                raise ValueError(
                    f"{name} delivers a model that answers with logits: train with the logistic loss or cross-entropy. "
                    f"Found {loss.definition}."
                )
        if self.steering and loss.each is None:
            raise ValueError(
                f"{type(self.steering[0]).__name__} needs the loss of each point, but {loss.definition} gives one "
                "number per batch."
            )


def network_interventions(recipe: Recipe, route: str) -> NetworkInterventions:
    """The interventions of a recipe by kind; those that this route does not apply are refused by name."""
    laws = recipe.interventions
    refuse_elsewhere(laws, route)
    for law in laws:
        if not isinstance(
            law,
            (
                DataIntervention,
                BatchIntervention,
                GroupIntervention,
                PointIntervention,
                StepIntervention,
                ModelIntervention,
            ),
        ):
            raise TypeError(
                f"`{route}` applies the six kinds of interventions. Found {type(law).__name__}, which is of none."
            )
    changing = [law for law in laws if isinstance(law, DataIntervention)]
    if changing and isinstance(recipe.order, GivenOrder):
        raise ValueError(f"An array as `order` names places in the data, which {type(changing[0]).__name__} changes.")
    mixing = [law for law in laws if isinstance(law, BatchIntervention)]
    if mixing and recipe.weights:
        raise ValueError(
            f"`weights` are those of points, which {type(mixing[0]).__name__} replaces: use an intervention of "
            "groups instead."
        )
    stepping = [law for law in laws if isinstance(law, StepIntervention) and law.by_group]
    weighing = [law for law in laws if isinstance(law, GroupIntervention) and not (law.constant and law.by == "draws")]
    if stepping and weighing:
        raise ValueError(
            f"{type(stepping[0]).__name__} takes one step for every group, so that no intervention weighs groups "
            "beside it. "
            f'Found {type(weighing[0]).__name__}: only Balanced(by="draws") goes with it.'
        )
    return NetworkInterventions(
        tuple(changing),
        tuple(mixing),
        tuple(law for law in laws if isinstance(law, (GroupIntervention, PointIntervention))),
        next((law for law in laws if isinstance(law, StepIntervention)), None),
        next((law for law in laws if isinstance(law, ModelIntervention)), None),
    )


def check_needs(laws: tuple[Intervention, ...], train: GroupedData, validation: GroupedData | None) -> None:
    """Raise for labels that an intervention needs and nobody gave, before anything is trained."""
    for law in laws:
        name = type(law).__name__
        if law.needs == "training groups" and sum(size > 0 for size in train.sizes.values()) < 2:
            raise ValueError(f"{name} needs training groups. Found points of one group alone.")
        if law.needs == "validation groups" and not isinstance(validation, GroupedData):
            raise ValueError(
                f"{name} needs validation groups: give validation=, points that are neither trained on nor looked at. "
                f"Found validation = {None if validation is None else type(validation).__name__}."
            )
    if validation is not None and not any(law.needs == "validation groups" for law in laws):
        raise ValueError("`validation` is for interventions that need validation groups. Found none.")


def check_group_answers(law: ModelIntervention | None, validation: GroupedData | None, held_out: GroupedData) -> None:
    """Raise for held-out points that an intervention cannot fit, and for a group without any of which it must know the
    answer."""
    if law is None or validation is None:
        return
    law.check(validation)
    if not law.by_group:
        return
    known = law.answers(validation)
    for group in held_out.groups:
        if group not in known:
            raise ValueError(
                f"{type(law).__name__} answers by group, and `validation` has no points of group {group!r} of "
                "`held_out`."
            )


def check_groups_in_batches(
    laws: tuple[GroupIntervention | PointIntervention, ...], train: GroupedData, recipe: Recipe
) -> None:
    """Raise where an intervention compares groups within a batch and too many batches would miss one."""
    for law in laws:
        if not isinstance(law, TermIntervention) or not law.compares_groups:
            continue
        size = recipe.batch_size(len(train))
        if size >= len(train):
            continue
        missing = (1.0 - share_of(train, recipe.drawn)) ** size
        worst = int(missing.argmax())
        if missing[worst] > MISSING:
            raise ValueError(
                f"{type(law).__name__} compares groups within a batch, and {percent(missing[worst], 0)} of batches of "
                f'{size} would hold no point of {train.groups[worst]!r}: add Balanced(by="draws") or take larger '
                "batches."
            )
