"""CVaR: only the points with the largest losses of a batch count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tiltmeter.interventions.kinds import PointIntervention


@dataclass(frozen=True)
class CVaR(PointIntervention):
    """The mean over the worst share `alpha` of every batch, the conditional value at risk (Levy et al. 2020).

    >>> import torch
    >>> CVaR(0.5).each(torch.tensor([0.1, 0.4, 0.2, 0.3]), None, None)
    tensor([0.0000, 0.8000, 0.0000, 0.6000])

    The losses of the k = alpha B worst points are multiplied by B / k, the others by 0, so that the mean over the batch
    is the mean over the worst. If k is not whole, the point at the edge counts in part.

    The worst points are not a group: wrong labels have the largest losses of all, and it trains on those.

    Args:
        alpha: Share of every batch that counts, the points with the largest losses.
    """

    cannot = "tell a hard point from one with a wrong label"
    pointwise = False

    alpha: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.alpha, bool) or not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"`alpha` should lie above 0 and be at most 1. Found alpha = {self.alpha!r}.")

    def each(self, losses: Any, scores: Any, y: Any) -> Any:  # noqa: ARG002
        import torch

        counted = self.alpha * len(losses)
        order = torch.argsort(losses.detach(), descending=True, stable=True)
        places = torch.empty_like(order)
        places[order] = torch.arange(len(order), device=order.device)
        share = (counted - places.to(losses.dtype)).clamp(0.0, 1.0)
        return losses * share / self.alpha
