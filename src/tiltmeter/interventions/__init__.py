"""Interventions: ways to change the bias, each a frozen value in a file of its own.

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

The kinds are in this folder, the interventions in one room for each kind: `group`, and `gradient` for those
interventions of groups that see gradients; `point`, `batch`, `data`, `step`, `model`. `shared` has what several of them
need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import homes_of, offer

if TYPE_CHECKING:
    from tiltmeter.interventions.batch.selec_mix import SelecMix as SelecMix
    from tiltmeter.interventions.data.amplified import Amplified as Amplified
    from tiltmeter.interventions.data.downsampled import Downsampled as Downsampled
    from tiltmeter.interventions.data.jtt import JTT as JTT
    from tiltmeter.interventions.data.pruned_easy import PrunedEasy as PrunedEasy
    from tiltmeter.interventions.data.reweighed import Reweighed as Reweighed
    from tiltmeter.interventions.data.useful import USEFUL as USEFUL
    from tiltmeter.interventions.gradient.group_clipping import GroupClipping as GroupClipping
    from tiltmeter.interventions.gradient.jacobian_descent import JacobianDescent as JacobianDescent
    from tiltmeter.interventions.gradient.normalised_gradient import NormalisedGradient as NormalisedGradient
    from tiltmeter.interventions.gradient.upgrad import UPGrad as UPGrad
    from tiltmeter.interventions.group.balanced import Balanced as Balanced
    from tiltmeter.interventions.group.chi_square_dro import ChiSquareDRO as ChiSquareDRO
    from tiltmeter.interventions.group.dual_ascent import DualAscent as DualAscent
    from tiltmeter.interventions.group.group_cvar import GroupCVaR as GroupCVaR
    from tiltmeter.interventions.group.group_dro import GroupDRO as GroupDRO
    from tiltmeter.interventions.group.pull_schedule import PullSchedule as PullSchedule
    from tiltmeter.interventions.group.tilted import Tilted as Tilted
    from tiltmeter.interventions.group.vrex import VREx as VREx
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
    from tiltmeter.interventions.model.dfr import DFR as DFR
    from tiltmeter.interventions.model.erasure import Erasure as Erasure
    from tiltmeter.interventions.model.group_temperature import GroupTemperature as GroupTemperature
    from tiltmeter.interventions.model.group_threshold import GroupThreshold as GroupThreshold
    from tiltmeter.interventions.point.attribution_prior import AttributionPrior as AttributionPrior
    from tiltmeter.interventions.point.cvar import CVaR as CVaR
    from tiltmeter.interventions.point.fairness_penalty import FairnessPenalty as FairnessPenalty
    from tiltmeter.interventions.point.generalised_cross_entropy import (
        GeneralisedCrossEntropy as GeneralisedCrossEntropy,
    )
    from tiltmeter.interventions.point.gradient_reversal import GradientReversal as GradientReversal
    from tiltmeter.interventions.point.lff import LfF as LfF
    from tiltmeter.interventions.point.product_of_experts import ProductOfExperts as ProductOfExperts
    from tiltmeter.interventions.point.spectral_decoupling import SpectralDecoupling as SpectralDecoupling
    from tiltmeter.interventions.step.fish import Fish as Fish
    from tiltmeter.interventions.step.gradient_penalty import GradientPenalty as GradientPenalty
    from tiltmeter.interventions.step.median_gradient import MedianGradient as MedianGradient
    from tiltmeter.interventions.step.sam import SAM as SAM

__all__ = offer(__name__)  # noqa: PLE0605

_ROOMS = ("group", "gradient", "point", "batch", "data", "step", "model")
#: The interventions themselves: the names that may stand in a file, and the module of each.
INTERVENTIONS: dict[str, str] = dict(
    sorted(
        ((name, home) for name, home in homes_of(__name__).items() if home.split(".")[2] in _ROOMS),
        key=lambda pair: _ROOMS.index(pair[1].split(".")[2]),
    )
)
