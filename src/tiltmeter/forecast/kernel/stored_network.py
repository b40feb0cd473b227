"""StoredNetwork: what a stored Tangent keeps of its network: its answers before training, not its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData


class StoredNetwork(nn.Module):
    """Answers every held-out point, given by its number, as the network did before training.

    `radial` holds the derivatives of the outputs when all weights are scaled, for the sample and for the held-out
    points. `held_out` is the account of the held-out points for an Origin; `probabilities` says whether the network
    ends in a sigmoid or softmax."""

    def __init__(
        self, name: str, first: np.ndarray, radial: tuple[np.ndarray, np.ndarray], held_out: Any, probabilities: bool
    ) -> None:
        super().__init__()
        self.name, self.radial, self.held_out, self.probabilities = name, radial, held_out, probabilities
        self._first = torch.as_tensor(first)

    @property
    def gives_probabilities(self) -> bool:
        """What the network was found to answer with, while its functions could be seen."""
        return self.probabilities

    def forward(self, places: Tensor) -> Tensor:
        return self._first[places[:, 0]]

    def __deepcopy__(self, memo: Any) -> StoredNetwork:
        raise without_network("A copy of the network")


def numbered(y: np.ndarray, codes: np.ndarray, groups: tuple[Any, ...], weights: np.ndarray | None) -> GroupedData:
    """Grouped data whose points are only their numbers."""
    data = object.__new__(GroupedData)
    data._set(np.arange(len(y))[:, None], y, codes, groups, weights)
    return data


def without_network(what: str) -> ValueError:
    """The error of everything that only the network itself can answer."""
    return ValueError(
        f"{what} needs the network, which a stored Tangent does not hold: use what `tm.tangent(model, train, "
        "held_out)` "
        "returns."
    )
