"""NetworkLaws: the interventions of a recipe by kind, checked against the data before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.batch_law import BatchLaw
from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.interventions.group_law import GroupLaw
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.model_law import ModelLaw
from tiltmeter.interventions.point_law import PointLaw
from tiltmeter.interventions.routes import refuse_elsewhere
from tiltmeter.interventions.step_law import StepLaw
from tiltmeter.interventions.term_law import TermLaw
from tiltmeter.measures.point_loss import PointLoss
from tiltmeter.recipe.order import GivenOrder
from tiltmeter.recipe.recipe import Recipe

#: A law that compares groups within a batch may miss one in this share of batches.
MISSING = 0.05


@dataclass(frozen=True)
class NetworkLaws:
    """What a training has to apply, and where."""

    data: tuple[DataLaw, ...] = ()
    batch: tuple[BatchLaw, ...] = ()
    steering: tuple[GroupLaw | PointLaw, ...] = ()
    step: StepLaw | None = None
    model: ModelLaw | None = None

    def check_loss(self, loss: PointLoss) -> None:
        """Refuse a loss that a law cannot read."""
        for law in (*self.steering, *((self.model,) if self.model is not None else ())):
            name = type(law).__name__
            if isinstance(law, PointLaw) and law.log_loss and loss.link not in ("sigmoid", "softmax"):
                raise ValueError(f"{name} needs the logistic loss or cross-entropy. Found {loss.definition}.")
            if isinstance(law, ModelLaw) and law.logits and loss.link not in ("sigmoid", "softmax"):
                raise ValueError(
                    f"{name} delivers a model that answers with logits: train with the logistic loss or cross-entropy. "
                    f"Found {loss.definition}."
                )
        if self.steering and loss.each is None:
            raise ValueError(
                f"{type(self.steering[0]).__name__} needs the loss of each point, but {loss.definition} gives one "
                "number per batch."
            )


def network_laws(recipe: Recipe, route: str) -> NetworkLaws:
    """The laws of a recipe by kind; those that this route does not apply are refused by name."""
    laws = recipe.interventions
    refuse_elsewhere(laws, route)
    for law in laws:
        if not isinstance(law, (DataLaw, BatchLaw, GroupLaw, PointLaw, StepLaw, ModelLaw)):
            raise TypeError(f"`{route}` applies the six kinds of laws. Found {type(law).__name__}, which is of none.")
    changing = [law for law in laws if isinstance(law, DataLaw)]
    if changing and isinstance(recipe.order, GivenOrder):
        raise ValueError(f"An array as `order` names places in the data, which {type(changing[0]).__name__} changes.")
    mixing = [law for law in laws if isinstance(law, BatchLaw)]
    if mixing and recipe.weights:
        raise ValueError(
            f"`weights` are those of points, which {type(mixing[0]).__name__} replaces: use a law of groups instead."
        )
    stepping = [law for law in laws if isinstance(law, StepLaw) and law.by_group]
    weighing = [law for law in laws if isinstance(law, GroupLaw) and not (law.constant and law.by == "draws")]
    if stepping and weighing:
        raise ValueError(
            f"{type(stepping[0]).__name__} takes one step for every group, so that no law weighs groups beside it. "
            f'Found {type(weighing[0]).__name__}: only Balanced(by="draws") goes with it.'
        )
    return NetworkLaws(
        tuple(changing),
        tuple(mixing),
        tuple(law for law in laws if isinstance(law, (GroupLaw, PointLaw))),
        next((law for law in laws if isinstance(law, StepLaw)), None),
        next((law for law in laws if isinstance(law, ModelLaw)), None),
    )


def check_needs(laws: tuple[Intervention, ...], train: GroupedData, held_out: GroupedData | None) -> None:
    """Raise for labels that a law needs and nobody gave, before anything is trained."""
    for law in laws:
        name = type(law).__name__
        if law.needs == "training groups" and sum(size > 0 for size in train.sizes.values()) < 2:
            raise ValueError(f"{name} needs training groups. Found points of one group alone.")
        if law.needs == "held-out groups" and not isinstance(held_out, GroupedData):
            raise ValueError(
                f"{name} needs held-out groups: give held_out=, points that are neither trained on nor looked at. "
                f"Found held_out = {None if held_out is None else type(held_out).__name__}."
            )
    if held_out is not None and not any(law.needs == "held-out groups" for law in laws):
        raise ValueError("`held_out` is for interventions that need held-out groups. Found none.")


def check_group_answers(law: ModelLaw | None, held_out: GroupedData | None, look: GroupedData) -> None:
    """Raise for held-out points that a law cannot fit, and for a group without any of which it must know the answer."""
    if law is None or held_out is None:
        return
    law.check(held_out)
    if not law.by_group:
        return
    known = law.answers(held_out)
    for group in look.groups:
        if group not in known:
            raise ValueError(
                f"{type(law).__name__} answers by group, and `held_out` has no points of group {group!r} of `look`."
            )


def check_groups_in_batches(laws: tuple[GroupLaw | PointLaw, ...], train: GroupedData, recipe: Recipe) -> None:
    """Raise where a law compares groups within a batch and too many batches would miss one."""
    for law in laws:
        if not isinstance(law, TermLaw) or not law.compares_groups:
            continue
        size = recipe.batch_size(len(train))
        if size >= len(train):
            continue
        missing = (1.0 - share_of(train, recipe.drawn)) ** size
        worst = int(missing.argmax())
        if missing[worst] > MISSING:
            raise ValueError(
                f"{type(law).__name__} compares groups within a batch, and {missing[worst]:.0%} of batches of {size} "
                f'would hold no point of {train.groups[worst]!r}: add Balanced(by="draws") or take larger batches.'
            )
