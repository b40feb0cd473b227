"""JacobianDescent: any weighting of group gradients that torchjd knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.group_intervention import GramIntervention, Seen, gram_of


@dataclass(frozen=True)
class JacobianDescent(GramIntervention):
    """P = weighting(gram), with a weighting of the package torchjd by name: "MGDA", "PCGrad", "IMTLG", "AlignedMTL".

    >>> JacobianDescent("MGDA").weighting
    'MGDA'

    It needs torchjd: `pip install "tiltmeter[jacobian]"`. Some of its weightings need packages of their own.

    `UPGrad` needs no package. Weightings that draw random numbers, such as PCGrad, follow torch's stream.

    Args:
        weighting: Name of a weighting of torchjd.
    """

    cannot = "see a conflict that hides below the noise of small batches"

    weighting: str = "MGDA"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weighting, str) or not self.weighting.isidentifier():
            raise ValueError(f"`weighting` should be a name of torchjd such as 'MGDA'. Found {self.weighting!r}.")

    def pull(self, z: np.ndarray, seen: Seen) -> np.ndarray:  # noqa: ARG002
        import torch

        chosen = _weighting(self.weighting)
        gram = gram_of(seen)
        flat = gram.reshape(-1, *gram.shape[-2:])
        found = [chosen(torch.as_tensor(one, dtype=torch.float64)).cpu().numpy() for one in flat]
        return np.stack(found).reshape(gram.shape[:-1])


def _weighting(name: str) -> Any:
    try:
        from torchjd import aggregation
    except ImportError:
        raise ImportError('JacobianDescent needs torchjd: pip install "tiltmeter[jacobian]".') from None
    kind = getattr(aggregation, f"{name}Weighting", None)
    if kind is None:
        known = sorted(one.removesuffix("Weighting") for one in dir(aggregation) if one.endswith("Weighting"))
        raise ValueError(f"torchjd has no weighting {name!r}. There are: {', '.join(filter(None, known))}.")
    return kind()
