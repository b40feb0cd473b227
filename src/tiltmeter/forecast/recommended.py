"""BestWeights: the group weights that a forecast recommends, in words too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tiltmeter.notebook_text import NotebookText
from tiltmeter.population.criteria import Criterion

#: Relative changes below this are not reported.
NOTICEABLE = 1e-3


@dataclass(frozen=True)
class BestWeights(NotebookText):
    """Weights with a mean of 1 over the training data, and what they are forecast to do.

    `before` and `after` are the criterion without and with them; `losses` hold every group's final loss, both ways.
    `at_bound`: the search ended at the largest ratio it tries.
    """

    weights: dict[Hashable, float]
    criterion: Criterion
    before: float
    after: float
    losses: dict[Hashable, tuple[float, float]]
    at_bound: bool

    @property
    def levels_down(self) -> bool:
        """Whether a gap closes only because a group gets worse, while none gets better."""
        worse = [after > before * (1 + NOTICEABLE) for before, after in self.losses.values()]
        better = [after < before * (1 - NOTICEABLE) for before, after in self.losses.values()]
        return any(worse) and not any(better)

    def __str__(self) -> str:
        if self.after > self.before * (1 - NOTICEABLE):
            return f"No weights are forecast to improve {self.criterion.name}, which is {self.before:.4g}."
        said = ", ".join(f"{group} {weight:.3g}" for group, weight in self.weights.items())
        ends = "; ".join(f"{group} {before:.4g} to {after:.4g}" for group, (before, after) in self.losses.items())
        text = f"Weights {said} are forecast to bring {self.criterion.name} from {self.before:.4g} to {self.after:.4g}"
        text += f" (final losses: {ends})"
        if self.at_bound:
            text += ", at the largest ratio tried"
        if self.levels_down:
            return f"{text}. This is levelling down: the gap closes because a group loses and none gains."
        if self.criterion.levels:
            return f"{text}. A gap can also close by harm: compare the losses before using these weights."
        return text + "."
