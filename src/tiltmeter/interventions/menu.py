"""The menu: the interventions that `advise` tries where none are named."""

from __future__ import annotations

from tiltmeter.interventions.batch import SelecMix
from tiltmeter.interventions.data import JTT, Downsampled, Reweighed
from tiltmeter.interventions.gradient import UPGrad
from tiltmeter.interventions.group import Balanced, GroupDRO, Tilted, VREx
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.model import GroupThreshold
from tiltmeter.interventions.point import CVaR
from tiltmeter.interventions.step import SAM


def menu(steps: int, curve: str = "loss") -> dict[str, Intervention]:
    """One setting of each kind that needs no points of its own, as published or as tried; nothing is tuned.

    >>> list(menu(steps=1000))[:3]
    ['balanced weights', 'balanced draws', 'group DRO']

    A question about decisions adds what acts on them: weights by group and label, and thresholds by group.

    >>> list(menu(steps=1000, curve="tpr"))[:2]
    ['group-label weights', 'thresholds by group']

    An intervention that does badly here may do well with other settings: pass your own to `advise`.

    Args:
        steps: Steps of the training; some settings depend on it.
        curve: Curve that is asked about; of a rate, thresholds make it equal.
    """
    rate = curve if curve in ("tpr", "fpr", "positive_rate", "error") else None
    on_decisions: dict[str, Intervention] = (
        {}
        if rate is None
        else {
            "group-label weights": Reweighed(),
            "thresholds by group": GroupThreshold(rate),  # type: ignore[arg-type]
        }
    )
    return {
        **on_decisions,
        "balanced weights": Balanced(),
        "balanced draws": Balanced(by="draws"),
        "group DRO": GroupDRO(rate=0.01),
        "V-REx": VREx(beta=10.0),
        "tilted": Tilted(strength=3.0),
        "UPGrad": UPGrad(),
        "CVaR": CVaR(alpha=0.5),
        "JTT": JTT(times=20, scout=max(1, steps // 10)),
        "down-sampled": Downsampled(),
        "SelecMix": SelecMix(),
        "SAM": SAM(rho=0.05),
    }
