"""By group: values that an intervention fits for every group, and a model whose scores they change."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def attribute_codes(attribute: Mapping[Hashable, Hashable] | None, groups: tuple[Any, ...]) -> np.ndarray:
    """For every group the number of its attribute; without a mapping the attribute is the group itself.

    >>> attribute_codes({"cat on grass": "grass", "dog on grass": "grass", "cat on sand": "sand"},
    ...                 ("cat on grass", "cat on sand", "dog on grass"))
    array([0, 1, 0])
    """
    if attribute is None:
        return np.arange(len(groups))
    if not isinstance(attribute, Mapping):
        raise TypeError(
            '`attribute` should say which one every group has, as {"cat on grass": "grass", ...}. Found '
            f"{attribute!r}."
        )
    missing = [group for group in groups if group not in attribute]
    if missing:
        raise ValueError(f"`attribute` should name every group. Missing: {', '.join(map(repr, missing))}.")
    values = list(dict.fromkeys(attribute[group] for group in groups))
    if len(values) < 2:
        raise ValueError(f"`attribute` should take at least two values. Found {values[0]!r} alone.")
    return np.array([values.index(attribute[group]) for group in groups])


@dataclass(frozen=True, eq=False)
class FittedGroups:
    """Groups as they are in the data, or joined by an attribute that several of them share.

    >>> import tiltmeter as tm
    >>> data = tm.GroupedData([[0.0]] * 4, [0, 1, 0, 1], ["cat, grass", "dog, grass", "cat, sand", "dog, sand"])
    >>> where = {group: group[5:] for group in data.groups}
    >>> found = FittedGroups.of(where, data)
    >>> found.names, found.codes.tolist(), found.by_group([1.0, 2.0])
    (('grass', 'sand'), [0, 0, 1, 1], [1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
    """

    names: tuple[Hashable, ...]
    #: The number of every point's fitted group.
    codes: np.ndarray
    #: For every group that can be answered the number of its fitted group.
    places: Mapping[Hashable, int]

    @classmethod
    def of(cls, attribute: Mapping[Hashable, Hashable] | None, data: Any) -> FittedGroups:
        codes = attribute_codes(attribute, data.groups)
        if attribute is None:
            return cls(tuple(data.groups), data.codes, {group: place for place, group in enumerate(data.groups)})
        names = {attribute[group]: int(place) for group, place in zip(data.groups, codes, strict=True)}
        # The attribute may also be told of groups that are not among the held-out ones. Of a new point only the
        # attribute may be known, so its values are answered too.
        places = {**names, **{group: names[value] for group, value in attribute.items() if value in names}}
        return cls(tuple(names), codes[data.codes], places)

    def by_group(self, values: Sequence[float]) -> list[float]:
        """One value for every group that can be answered, from one for every fitted group."""
        return [values[place] for place in self.places.values()]

    def check_both_labels(self, y: np.ndarray, law: str) -> None:
        """Refuse a group with points of one label alone, to which nothing can be fitted."""
        for code, group in enumerate(self.names):
            found = np.unique(y[self.codes == code])
            if len(found) < 2:
                what = "none" if not len(found) else f"y = {found[0].item()!r} alone"
                raise ValueError(
                    f"{law} needs held-out points of both labels in every group. Found {what} in {group!r}."
                )


class GroupScores(nn.Module):
    """scale_g (score - shift_g), for points whose groups are known: the model itself is not changed.

    >>> model = GroupScores(nn.Linear(1, 1, bias=False), ("a", "b"), [1.0, 0.5], [0.0, 2.0])
    >>> _ = nn.init.ones_(model.model.weight)
    >>> model(torch.tensor([[3.0], [3.0]]), ["a", "b"])
    tensor([3.0000, 0.5000], grad_fn=<MulBackward0>)
    """

    scale: Tensor
    shift: Tensor

    def __init__(
        self, model: nn.Module, groups: tuple[Any, ...], scale: Sequence[float], shift: Sequence[float]
    ) -> None:
        super().__init__()
        self.model, self.groups = model, tuple(groups)
        for name, values in (("scale", scale), ("shift", shift)):
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float64))

    def forward(self, x: Any, group: Sequence[Any]) -> Tensor:
        """The scores of points of these groups, by name."""
        unknown = [one for one in group if one not in self.groups]
        if unknown:
            listed = ", ".join(map(repr, self.groups))
            raise KeyError(f"`group` names the unknown group {unknown[0]!r}. There are: {listed}.")
        found = self.model(x)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        return self.rescored(found, torch.tensor([self.groups.index(one) for one in group]))

    def codes_of(self, data: Any) -> Tensor:
        """The code of every point of these data among the groups of this module."""
        known = torch.tensor([self.groups.index(one) for one in data.groups])
        return known[torch.as_tensor(data.codes, dtype=torch.int64)]

    def rescored(self, scores: Tensor, codes: Tensor) -> Tensor:
        """Scores (points,) or (points, outputs) of points of these groups, by code."""
        where = codes.to(self.scale.device)
        scale, shift = (part[where].to(scores) for part in (self.scale, self.shift))
        if scores.ndim == 2:
            scale, shift = scale[:, None], shift[:, None]
        return scale * (scores - shift)


#: Points that go through the network together.
CHUNK = 1024


def held_out_scores(model: Any, data: Any, law: str) -> np.ndarray:
    """Scores (points,) or (points, outputs) in evaluation mode; modes are put back."""
    import torch

    from tiltmeter.interventions.shared.log_losses import one_number_a_point

    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    x = data.tensors(like.dtype)[0].to(like.device)
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = False
        with torch.no_grad():
            parts = [
                one_number_a_point(model(x[at : at + CHUNK].clone()), len(x[at : at + CHUNK]), law)
                for at in range(0, len(x), CHUNK)
            ]
    finally:
        for module, mode in modes:
            module.training = mode
    return np.asarray(torch.cat(parts).double().cpu().numpy())
