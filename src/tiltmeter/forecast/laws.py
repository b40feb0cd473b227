"""Laws that forecasts of trained replicas can apply, and a sentence for the others."""

from __future__ import annotations

from tiltmeter.interventions.batch_law import BatchLaw
from tiltmeter.interventions.data_law import DataLaw
from tiltmeter.interventions.group_law import GroupLaw
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.model_law import ModelLaw
from tiltmeter.interventions.point_law import PointLaw
from tiltmeter.interventions.step_law import StepLaw
from tiltmeter.interventions.term_law import TermLaw
from tiltmeter.recipe.recipe import Recipe


def check_twin_laws(recipe: Recipe) -> None:
    """Refuse the few laws that act on a narrow network in another way than on a wide one.

    A law that delivers another model fits it to the features of the network, of which a twin has fewer; so does one
    with a term of features. A step of somebody else's may depend on the number of weights.
    """
    for law in recipe.interventions:
        if isinstance(law, PointLaw) and _sees_network(law):
            raise ValueError(f"A twin has other features and knows points by their places. {_found(law)}")
        if isinstance(law, ModelLaw):
            raise ValueError(
                f"A twin delivers no other model: {type(law).__name__} would fit its few features. `train` applies it."
            )
        if isinstance(law, StepLaw) and not _own(law):
            raise ValueError(f"A twin knows the steps of tiltmeter's laws only. {_found(law)}")


def needs_points(recipe: Recipe) -> bool:
    """Whether a law makes new points, so that a twin cannot be given them as places among known ones."""
    return any(
        isinstance(law, BatchLaw) or (isinstance(law, DataLaw) and not _own(law)) for law in recipe.interventions
    )


def stackable(recipe: Recipe) -> bool:
    """Whether all laws can be applied to several twins at once: those of groups by weights, and of points."""
    return all(
        (isinstance(law, PointLaw) and not isinstance(law, TermLaw))
        or (isinstance(law, GroupLaw) and not law.sees_gram and law.by == "weights")
        for law in recipe.interventions
    )


def check_coordinate_laws(recipe: Recipe) -> None:
    """Refuse laws that a linearised network does not know."""
    for law in recipe.interventions:
        by_weights = isinstance(law, GroupLaw) and not law.sees_gram and law.by != "draws"
        if not by_weights and (not isinstance(law, PointLaw) or isinstance(law, TermLaw)):
            raise ValueError(f"A forecast by coordinates applies laws by weights and of points. {_found(law)}")


def _own(law: Intervention) -> bool:
    return type(law).__module__.startswith("tiltmeter.")


def _sees_network(law: PointLaw) -> bool:
    """Whether a law sees points or features, or has a module of its own: a twin has others."""
    return isinstance(law, TermLaw) and bool(law.sees & {"inputs", "features"})


def _found(law: Intervention) -> str:
    return f"Found {type(law).__name__}: `train` applies it."
