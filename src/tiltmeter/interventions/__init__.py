"""Interventions: ways to change the bias, each a frozen value in a file of its own.

>>> import tiltmeter as tm
>>> problem = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
>>> law = tm.interventions.GroupDRO(rate=5.0, by="draws")
>>> steered = tm.predict(problem, tm.SGD(lr=0.2, interventions=(law,)), [0.0, 20.0, 60.0])
>>> abs(steered["loss_gap"].values[-1]).round(2)
array([0.])

An intervention is a description. There are six kinds, by what they change: how much a *group* counts (`GroupLaw`), the
loss of a *point* (`PointLaw`), a *batch* (`BatchLaw`), the *data* (`DataLaw`), the *step* of the optimiser (`StepLaw`),
or the *model* that is delivered (`ModelLaw`). The same value can be given to every function that can apply it.

The kinds are in this folder, the laws in one room for each kind: `group`, and `gradient` for those laws of groups that
see gradients; `point`, `batch`, `data`, `step`, `model`. `shared` has what several of them need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.interventions.batch.selec_mix import SelecMix as SelecMix
    from tiltmeter.interventions.batch_law import BatchLaw as BatchLaw
    from tiltmeter.interventions.data.amplified import Amplified as Amplified
    from tiltmeter.interventions.data.downsampled import Downsampled as Downsampled
    from tiltmeter.interventions.data.jtt import JTT as JTT
    from tiltmeter.interventions.data.useful import USEFUL as USEFUL
    from tiltmeter.interventions.data_law import DataLaw as DataLaw
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
    from tiltmeter.interventions.group_law import GroupLaw as GroupLaw
    from tiltmeter.interventions.group_law import Seen as Seen
    from tiltmeter.interventions.intervention import Intervention as Intervention
    from tiltmeter.interventions.model.dfr import DFR as DFR
    from tiltmeter.interventions.model.erasure import Erasure as Erasure
    from tiltmeter.interventions.model.group_temperature import GroupTemperature as GroupTemperature
    from tiltmeter.interventions.model.group_threshold import GroupThreshold as GroupThreshold
    from tiltmeter.interventions.model_law import ModelLaw as ModelLaw
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
    from tiltmeter.interventions.point_law import PointLaw as PointLaw
    from tiltmeter.interventions.step.fish import Fish as Fish
    from tiltmeter.interventions.step.gradient_penalty import GradientPenalty as GradientPenalty
    from tiltmeter.interventions.step.sam import SAM as SAM
    from tiltmeter.interventions.step_law import StepLaw as StepLaw
    from tiltmeter.interventions.term_law import Shown as Shown
    from tiltmeter.interventions.term_law import TermLaw as TermLaw

#: The kinds of intervention, for writing new laws.
KINDS = {
    "Intervention": "interventions.intervention",
    "GroupLaw": "interventions.group_law",
    "Seen": "interventions.group_law",
    "PointLaw": "interventions.point_law",
    "TermLaw": "interventions.term_law",
    "Shown": "interventions.term_law",
    "BatchLaw": "interventions.batch_law",
    "DataLaw": "interventions.data_law",
    "StepLaw": "interventions.step_law",
    "ModelLaw": "interventions.model_law",
}
#: The laws themselves: the names that may stand in a file.
LAWS = {
    "Balanced": "interventions.group.balanced",
    "PullSchedule": "interventions.group.pull_schedule",
    "GroupDRO": "interventions.group.group_dro",
    "DualAscent": "interventions.group.dual_ascent",
    "VREx": "interventions.group.vrex",
    "Tilted": "interventions.group.tilted",
    "ChiSquareDRO": "interventions.group.chi_square_dro",
    "GroupCVaR": "interventions.group.group_cvar",
    "NormalisedGradient": "interventions.gradient.normalised_gradient",
    "UPGrad": "interventions.gradient.upgrad",
    "GroupClipping": "interventions.gradient.group_clipping",
    "JacobianDescent": "interventions.gradient.jacobian_descent",
    "GeneralisedCrossEntropy": "interventions.point.generalised_cross_entropy",
    "SpectralDecoupling": "interventions.point.spectral_decoupling",
    "CVaR": "interventions.point.cvar",
    "LfF": "interventions.point.lff",
    "ProductOfExperts": "interventions.point.product_of_experts",
    "GradientReversal": "interventions.point.gradient_reversal",
    "AttributionPrior": "interventions.point.attribution_prior",
    "FairnessPenalty": "interventions.point.fairness_penalty",
    "SelecMix": "interventions.batch.selec_mix",
    "Downsampled": "interventions.data.downsampled",
    "JTT": "interventions.data.jtt",
    "USEFUL": "interventions.data.useful",
    "Amplified": "interventions.data.amplified",
    "SAM": "interventions.step.sam",
    "GradientPenalty": "interventions.step.gradient_penalty",
    "Fish": "interventions.step.fish",
    "DFR": "interventions.model.dfr",
    "Erasure": "interventions.model.erasure",
    "GroupTemperature": "interventions.model.group_temperature",
    "GroupThreshold": "interventions.model.group_threshold",
}

__all__ = offer(__name__, {**LAWS, **KINDS})  # noqa: PLE0605
