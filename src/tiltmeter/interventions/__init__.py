"""Interventions: ways to change the bias, each a frozen value.

>>> import tiltmeter as tm
>>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
>>> law = tm.interventions.GroupDRO(rate=5.0, by="draws")
>>> steered = tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), [0.0, 20.0, 60.0])
>>> abs(steered["loss_gap"].values[-1]).round(2)
array([0.])

An intervention is a description. There are six kinds, by what they change: how much a *group* counts
(`GroupIntervention`), the loss of a *point* (`PointIntervention`), a *batch* (`BatchIntervention`), the *data*
(`DataIntervention`), the *step* of the optimiser (`StepIntervention`), or the *model* that is delivered
(`ModelIntervention`). The same value can be given to every function that can apply it.

Each kind has a file with its interventions: `group`, and `gradient` for those of groups that see gradients; `point`,
`batch`, `data`, `step`, `model`. `shared` has what several of them need. The laboratory brings others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import homes_of, offer

if TYPE_CHECKING:
    from tiltmeter.interventions.batch import SelecMix as SelecMix
    from tiltmeter.interventions.data import JTT as JTT
    from tiltmeter.interventions.data import Downsampled as Downsampled
    from tiltmeter.interventions.data import Reweighed as Reweighed
    from tiltmeter.interventions.gradient import GroupClipping as GroupClipping
    from tiltmeter.interventions.gradient import JacobianDescent as JacobianDescent
    from tiltmeter.interventions.gradient import NormalisedGradient as NormalisedGradient
    from tiltmeter.interventions.gradient import UPGrad as UPGrad
    from tiltmeter.interventions.group import Balanced as Balanced
    from tiltmeter.interventions.group import ChiSquareDRO as ChiSquareDRO
    from tiltmeter.interventions.group import DualAscent as DualAscent
    from tiltmeter.interventions.group import GroupCVaR as GroupCVaR
    from tiltmeter.interventions.group import GroupDRO as GroupDRO
    from tiltmeter.interventions.group import PullSchedule as PullSchedule
    from tiltmeter.interventions.group import Tilted as Tilted
    from tiltmeter.interventions.group import VREx as VREx
    from tiltmeter.interventions.group_intervention import GroupIntervention as GroupIntervention
    from tiltmeter.interventions.group_intervention import Seen as Seen
    from tiltmeter.interventions.intervention import Intervention as Intervention
    from tiltmeter.interventions.kinds import BatchIntervention as BatchIntervention
    from tiltmeter.interventions.kinds import DataIntervention as DataIntervention
    from tiltmeter.interventions.kinds import ModelIntervention as ModelIntervention
    from tiltmeter.interventions.kinds import PointIntervention as PointIntervention
    from tiltmeter.interventions.kinds import Shown as Shown
    from tiltmeter.interventions.kinds import StepIntervention as StepIntervention
    from tiltmeter.interventions.kinds import TermIntervention as TermIntervention
    from tiltmeter.interventions.menu import menu as menu
    from tiltmeter.interventions.model import DFR as DFR
    from tiltmeter.interventions.model import Erasure as Erasure
    from tiltmeter.interventions.model import GroupTemperature as GroupTemperature
    from tiltmeter.interventions.model import GroupThreshold as GroupThreshold
    from tiltmeter.interventions.point import CVaR as CVaR
    from tiltmeter.interventions.point import FairnessPenalty as FairnessPenalty
    from tiltmeter.interventions.point import GeneralisedCrossEntropy as GeneralisedCrossEntropy
    from tiltmeter.interventions.point import GradientReversal as GradientReversal
    from tiltmeter.interventions.point import LfF as LfF
    from tiltmeter.interventions.step import SAM as SAM

__all__ = offer(__name__)  # noqa: PLE0605

_ROOMS = ("group", "gradient", "point", "batch", "data", "step", "model")
#: The interventions themselves: the names that may stand in a file, and the module of each.
INTERVENTIONS: dict[str, str] = dict(
    sorted(
        ((name, home) for name, home in homes_of(__name__).items() if home.split(".")[2] in _ROOMS),
        key=lambda pair: _ROOMS.index(pair[1].split(".")[2]),
    )
)
