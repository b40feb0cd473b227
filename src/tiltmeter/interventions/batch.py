"""Batch interventions: what a batch is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import BatchIntervention


@dataclass(frozen=True)
class SelecMix(BatchIntervention):
    """Every point is mixed into a partner of its batch with the same label and another group, Hwang et al. (2022).

    >>> import torch
    >>> x, y, group = torch.eye(2), torch.tensor([1, 1]), torch.tensor([0, 1])
    >>> mixed, labels, codes = SelecMix().batch(x, y, group, np.random.default_rng(0))
    >>> mixed.shape, codes.tolist()
    (torch.Size([4, 2]), [0, 1, 1, 0])

    Where there is none, the partner has another label and the same group; a point without any partner stays as it is.
    The mixed point is lam x + (1 - lam) partner with lam uniform in [0, 1/2], and has the partner's label and group.

    Without the plain batch a binary bias is turned round instead of removed: groups change places.

    Args:
        plain: Whether the batch as drawn stands beside the mixed one, half and half.
    """

    title = "points mixed with partners that contradict the bias"
    cannot = "mix what cannot be added, such as tokens"

    plain: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.plain, bool):
            raise TypeError(f"`plain` should be True or False. Found plain = {self.plain!r}.")

    def cost(self, groups: int) -> float:  # noqa: ARG002
        return 2.0 if self.plain else 1.0

    def batch(self, x: Any, y: Any, group: Any, rng: np.random.Generator) -> tuple[Any, Any, Any]:
        import torch

        if not x.is_floating_point():
            raise TypeError(f"SelecMix mixes points, which should be numbers with a fraction. Found {x.dtype}.")
        labels, codes = y.cpu().numpy(), group.cpu().numpy()
        same_label, same_group = labels[:, None] == labels, codes[:, None] == codes
        chosen = np.arange(len(labels))
        for fits in (~same_label & same_group, same_label & ~same_group):  # the second is preferred
            found = np.where(fits, rng.random(fits.shape), -1.0)
            chosen = np.where(fits.any(1), found.argmax(1), chosen)
        partner = torch.as_tensor(chosen, device=x.device)
        share = torch.as_tensor(rng.random(len(labels)) / 2.0, dtype=x.dtype, device=x.device)
        share = share.reshape(-1, *(1,) * (x.ndim - 1))
        mixed = share * x + (1.0 - share) * x[partner], y[partner], group[partner]
        if not self.plain:
            return mixed
        return torch.cat([x, mixed[0]]), torch.cat([y, mixed[1]]), torch.cat([group, mixed[2]])
