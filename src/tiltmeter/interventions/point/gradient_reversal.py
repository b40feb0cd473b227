"""GradientReversal: features from which an adversary cannot tell an attribute."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import Shown, TermIntervention
from tiltmeter.interventions.shared.by_group import attribute_codes
from tiltmeter.interventions.shared.shares import checked_per_group


@dataclass(frozen=True)
class GradientReversal(TermIntervention):
    """An adversary learns the attribute from the last features, and the model unlearns it, Ganin et al. (2016).

    >>> GradientReversal(strength=0.5, hidden=16).needs
    'training groups'

    The adversary minimises its cross-entropy A; the gradient of A with respect to the features goes into the model
    times -`strength`. It is linear, or has one layer of `hidden` units. In a loop of one's own the optimiser gets its
    parameters too: `[*model.parameters(), *steer.parameters()]`.

    Minimising against one adversary is not the same as hiding the attribute from all of them, and runs differ from
    seed to seed far more than plain ones. If the attribute goes along with the label, hiding one hides the other.

    Args:
        strength: How much the model unlearns, as a factor on the adversary's gradient.
        attribute: Which attribute each group has; None: the group itself.
        hidden: Units of the adversary's hidden layer; 0: it is linear.
        seed: Seed of the adversary's initial weights.
    """

    needs = "training groups"
    sees = frozenset({"groups", "features"})
    cannot = "hide an attribute that goes along with the label and keep the label"

    strength: float = 0.1
    attribute: Mapping[Hashable, Hashable] | None = None
    hidden: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checked_per_group(self.strength, "strength", 0.0)
        if isinstance(self.hidden, bool) or self.hidden != int(self.hidden) or self.hidden < 0:
            raise ValueError(f"`hidden` should be a number of units, at least 0. Found hidden = {self.hidden!r}.")

    def module(self, model: Any, data: Any) -> Any:
        import torch

        from tiltmeter.interventions.shared.last_features import last_layer

        layer = last_layer(model, "GradientReversal")
        codes = attribute_codes(self.attribute, data.groups)
        classes = int(codes.max()) + 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            if self.hidden:
                head = [torch.nn.Linear(layer.in_features, self.hidden), torch.nn.ReLU()]
                made = torch.nn.Sequential(*head, torch.nn.Linear(self.hidden, classes))
            else:
                made = torch.nn.Sequential(torch.nn.Linear(layer.in_features, classes))
        made.register_buffer("codes", torch.as_tensor(np.asarray(codes, dtype=np.int64)))
        return made.to(layer.weight.device, layer.weight.dtype)

    def term(self, shown: Shown) -> tuple[Any, Any]:
        import torch

        wanted = shown.own.codes[shown.group]
        against = shown.features
        # The value and the gradient of the adversary are its own; to the features it goes with the sign turned.
        turned = (1.0 + self.strength) * against.detach() - self.strength * against
        return shown.losses, torch.nn.functional.cross_entropy(shown.own(turned), wanted)
