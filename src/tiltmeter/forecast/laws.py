"""Laws that forecasts of trained replicas can apply, and a sentence for the others."""

from __future__ import annotations

from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.interventions.group_law import GroupLaw
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.point_law import PointLaw
from tiltmeter.interventions.term_law import TermLaw
from tiltmeter.recipe.recipe import Recipe


def check_twin_laws(recipe: Recipe) -> None:
    """Refuse laws that change points, steps or the model: a twin has the data by place, and another width.

    Laws of groups and of points, and those of tiltmeter that choose among the data, act on a twin as on the network.
    """
    for law in recipe.interventions:
        by_losses = isinstance(law, GroupLaw) and not law.sees_gram
        known = by_losses or (isinstance(law, PointLaw) and not _sees_network(law))
        choosing = isinstance(law, DataLaw) and type(law).__module__.startswith("tiltmeter.")
        if not known and not choosing:
            raise ValueError(f"A twin applies laws of groups, of points and of what is chosen. {_found(law)}")


def check_coordinate_laws(recipe: Recipe) -> None:
    """Refuse laws that a linearised network does not know."""
    for law in recipe.interventions:
        by_weights = isinstance(law, GroupLaw) and not law.sees_gram and law.by != "draws"
        if not by_weights and (not isinstance(law, PointLaw) or isinstance(law, TermLaw)):
            raise ValueError(f"A forecast by coordinates applies laws by weights and of points. {_found(law)}")


def _sees_network(law: PointLaw) -> bool:
    """Whether a law sees points or features, or has a module of its own: a twin has others."""
    return isinstance(law, TermLaw) and bool(law.sees & {"inputs", "features"})


def _found(law: Intervention) -> str:
    return f"Found {type(law).__name__}: `train` applies it."
