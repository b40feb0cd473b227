"""AskedRecipe: a recipe as it was asked for and as twins are trained by it; which of several can share twins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.found_forecasts import Name
from tiltmeter.forecast.laws import check_twin_laws, stackable
from tiltmeter.recipe.lowered import lowered_recipe
from tiltmeter.recipe.parts import different_parts
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.training.network_laws import check_needs

#: Parts of a recipe that may differ between twins trained together.
OWN_PARTS = frozenset({"weights", "interventions"})


@dataclass(frozen=True, eq=False)
class AskedRecipe:
    """`lowered` has the constant laws of `asked` as weights and proportions."""

    asked: Recipe
    lowered: Recipe

    @classmethod
    def of(cls, recipe: Recipe, train: GroupedData) -> AskedRecipe:
        """Lower a recipe; laws that no twin can follow are refused."""
        lowered = lowered_recipe(recipe, train)
        check_twin_laws(lowered)
        check_needs(recipe.interventions, train, None)
        return cls(recipe, lowered)

    def shares_twins_with(self, other: AskedRecipe) -> bool:
        """Whether twins of both see the same batches and take their steps alike, so that one stack can train them.

        Recipes without interventions need less of the untrained network, so they are not mixed with others.
        """
        one, two = self.lowered, other.lowered
        alike = bool(self.asked.interventions) == bool(other.asked.interventions)
        return alike and stackable(one) and stackable(two) and OWN_PARTS.issuperset(different_parts(one, two))


def families(recipes: Mapping[Name, AskedRecipe]) -> Iterator[dict[Name, AskedRecipe]]:
    """Recipes that share twins, together; every other by itself."""
    left = dict(recipes)
    while left:
        first = next(iter(left))
        found = {name: one for name, one in left.items() if name == first or one.shares_twins_with(left[first])}
        left = {name: one for name, one in left.items() if name not in found}
        yield found
