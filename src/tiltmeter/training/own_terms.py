"""OwnTerms: laws of points that see the whole batch, with the modules that they have beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.point_law import PointLaw
from tiltmeter.interventions.term_law import Shown, TermLaw
from tiltmeter.training.across_ranks import processes
from tiltmeter.training.shown_features import ShownFeatures


class OwnTerms:
    """Shows every law what it asks for, and hands back losses and a term.

    `modules` are those that laws have beside the model, in the order of the laws.
    """

    modules: list[nn.Module]

    def __init__(self, laws: Sequence[PointLaw], data: GroupedData, model: nn.Module | None, runs: int | None) -> None:
        self.modules = []
        self._labels = tuple(data.labels.tolist())
        self.own: dict[int, nn.Module] = {}  # by the number of their law
        self._features: dict[int, ShownFeatures] = {}
        for number, law in enumerate(laws):
            if not isinstance(law, TermLaw):
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
        self, number: int, law: TermLaw, losses: Tensor, group: Tensor | None, scores: Tensor, y: Tensor, x: Any
    ) -> tuple[Tensor, Any]:
        """The losses and the term of the law of this number; of several runs each by itself."""
        name = type(law).__name__
        if "inputs" in law.sees and x is not None and not isinstance(x, Tensor):
            raise TypeError(f"{name} needs points that are one tensor. Found {type(x).__name__}.")
        for word, given, wanted in (("groups", group, "the codes of groups"), ("inputs", x, "the points, x=")):
            if word in law.sees and given is None:
                raise ValueError(f"{name} needs {wanted}. Found none.")
        codes = None if group is None else group.to(losses.device, torch.int64)
        if losses.ndim == 2:
            found = [
                law.term(self._shown(number, law.sees, losses[run], scores[run], y[run], codes, x, run))
                for run in range(len(losses))
            ]
            terms = [torch.as_tensor(term, dtype=losses.dtype, device=losses.device) for _, term in found]
            return torch.stack([each for each, _ in found]), torch.stack(terms)
        return law.term(self._shown(number, law.sees, losses, scores, y, codes, x, None))

    def _shown(
        self,
        number: int,
        sees: frozenset[str],
        losses: Tensor,
        scores: Tensor,
        y: Tensor,
        codes: Tensor | None,
        x: Any,
        run: int | None,
    ) -> Shown:
        features = self._features.get(number)
        group, points = (one if run is None or one is None else one[run] for one in (codes, x))
        return Shown(
            losses,
            scores,
            y,
            self._labels,
            group if "groups" in sees else None,
            points if "inputs" in sees else None,
            None if features is None else features.of(len(losses)),
            self.own.get(number),
        )
