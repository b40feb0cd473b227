"""OwnTerms: interventions of points that see the whole batch, with the modules that they have beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.kinds import PointIntervention, Shown, TermIntervention
from tiltmeter.interventions.shared.last_features import last_layer
from tiltmeter.training.shards import processes


class ShownFeatures:
    """The inputs of the last linear layer, with their graph, until the next pass.

    >>> import torch
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> shown = ShownFeatures(model, "GradientReversal")
    >>> _ = model(torch.zeros(5, 3))
    >>> shown.of(5).shape
    torch.Size([5, 2])
    """

    def __init__(self, model: nn.Module, law: str) -> None:
        self._law = law
        self._kept: list[Tensor] = []
        kept = self._kept

        def keep(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            if module.training:
                kept[:] = [inputs[0]]

        last_layer(model, law).register_forward_pre_hook(keep)

    def __deepcopy__(self, memo: dict[int, Any]) -> ShownFeatures:
        return self  # a copied model has the same hook

    def of(self, points: int) -> Tensor:
        """The features of a batch of so many points that the model has just answered."""
        if not self._kept or self._kept[0].ndim != 2 or len(self._kept[0]) != points:
            found = "none" if not self._kept else f"shape {tuple(self._kept[0].shape)}"
            raise ValueError(
                f"{self._law} needs one row of features for each of the {points} points that `model` has just "
                f"answered in training mode. Found {found}."
            )
        return self._kept[0]


class OwnTerms:
    """Shows every intervention what it asks for, and hands back losses and a term.

    `modules` are those that interventions have beside the model, in the order of the interventions.
    """

    modules: list[nn.Module]

    def __init__(
        self, laws: Sequence[PointIntervention], data: GroupedData, model: nn.Module | None, runs: int | None
    ) -> None:
        self.modules = []
        self._labels = tuple(data.labels.tolist())
        self.own: dict[int, nn.Module] = {}  # by the number of their intervention
        self._features: dict[int, ShownFeatures] = {}
        for number, law in enumerate(laws):
            if not isinstance(law, TermIntervention):
                continue
            name = type(law).__name__
            if model is None:
                raise ValueError(f"{name} sees the network: give model= too.")
            if runs is not None and "ensemble" not in law.routes:
                raise ValueError(f"{name} sees the network of one run. Found runs = {runs}.")
            made = law.module(model, data)
            if made is not None:
                self.own[number] = made
                self.modules.append(made)
                if processes() > 1 and any(one.requires_grad for one in made.parameters()):
                    raise ValueError(f"{name} trains a network of its own: several processes would train several.")
            if "features" in law.sees:
                self._features[number] = ShownFeatures(model, name)

    def __call__(
        self,
        number: int,
        law: TermIntervention,
        losses: Tensor,
        group: Tensor | None,
        scores: Tensor,
        y: Tensor,
        x: Any,
    ) -> tuple[Tensor, Any]:
        """The losses and the term of the intervention of this number; of several runs each by itself."""
        name = type(law).__name__
        if "inputs" in law.sees and x is not None and not isinstance(x, Tensor):
            raise TypeError(f"{name} needs points that are one tensor. Found {type(x).__name__}.")
        for word, given, wanted in (("groups", group, "the codes of groups"), ("inputs", x, "the points, x=")):
            if word in law.sees and given is None:
                raise ValueError(f"{name} needs {wanted}. Found none.")
        codes = None if group is None else group.to(losses.device, torch.int64)
        features = self._features.get(number)

        def shown(run: int | None) -> Shown:
            def part(values: Any) -> Any:
                return values if run is None or values is None else values[run]

            return Shown(
                part(losses),
                part(scores),
                part(y),
                self._labels,
                part(codes) if "groups" in law.sees else None,
                part(x) if "inputs" in law.sees else None,
                None if features is None else features.of(len(part(losses))),
                self.own.get(number),
            )

        if losses.ndim == 1:
            return law.term(shown(None))
        found = [law.term(shown(run)) for run in range(len(losses))]
        terms = [torch.as_tensor(term, dtype=losses.dtype, device=losses.device) for _, term in found]
        return torch.stack([each for each, _ in found]), torch.stack(terms)
