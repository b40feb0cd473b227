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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.interventions.amplified import Amplified as Amplified
    from tiltmeter.interventions.balanced import Balanced as Balanced
    from tiltmeter.interventions.batch_law import BatchLaw as BatchLaw
    from tiltmeter.interventions.chi_square_dro import ChiSquareDRO as ChiSquareDRO
    from tiltmeter.interventions.cvar import CVaR as CVaR
    from tiltmeter.interventions.data_law import DataLaw as DataLaw
    from tiltmeter.interventions.dfr import DFR as DFR
    from tiltmeter.interventions.downsampled import Downsampled as Downsampled
    from tiltmeter.interventions.dual_ascent import DualAscent as DualAscent
    from tiltmeter.interventions.erasure import Erasure as Erasure
    from tiltmeter.interventions.generalised_cross_entropy import GeneralisedCrossEntropy as GeneralisedCrossEntropy
    from tiltmeter.interventions.gradient_penalty import GradientPenalty as GradientPenalty
    from tiltmeter.interventions.group_clipping import GroupClipping as GroupClipping
    from tiltmeter.interventions.group_cvar import GroupCVaR as GroupCVaR
    from tiltmeter.interventions.group_dro import GroupDRO as GroupDRO
    from tiltmeter.interventions.group_law import GroupLaw as GroupLaw
    from tiltmeter.interventions.group_law import Seen as Seen
    from tiltmeter.interventions.intervention import Intervention as Intervention
    from tiltmeter.interventions.jacobian_descent import JacobianDescent as JacobianDescent
    from tiltmeter.interventions.jtt import JTT as JTT
    from tiltmeter.interventions.model_law import ModelLaw as ModelLaw
    from tiltmeter.interventions.normalised_gradient import NormalisedGradient as NormalisedGradient
    from tiltmeter.interventions.point_law import PointLaw as PointLaw
    from tiltmeter.interventions.pull_schedule import PullSchedule as PullSchedule
    from tiltmeter.interventions.sam import SAM as SAM
    from tiltmeter.interventions.selec_mix import SelecMix as SelecMix
    from tiltmeter.interventions.spectral_decoupling import SpectralDecoupling as SpectralDecoupling
    from tiltmeter.interventions.step_law import StepLaw as StepLaw
    from tiltmeter.interventions.tilted import Tilted as Tilted
    from tiltmeter.interventions.upgrad import UPGrad as UPGrad
    from tiltmeter.interventions.useful import USEFUL as USEFUL
    from tiltmeter.interventions.vrex import VREx as VREx

#: The kinds of intervention, for writing new laws.
KINDS = {
    "Intervention": "interventions.intervention",
    "GroupLaw": "interventions.group_law",
    "Seen": "interventions.group_law",
    "PointLaw": "interventions.point_law",
    "BatchLaw": "interventions.batch_law",
    "DataLaw": "interventions.data_law",
    "StepLaw": "interventions.step_law",
    "ModelLaw": "interventions.model_law",
}
#: The laws themselves: the names that may stand in a file.
LAWS = {
    "Balanced": "interventions.balanced",
    "PullSchedule": "interventions.pull_schedule",
    "GroupDRO": "interventions.group_dro",
    "DualAscent": "interventions.dual_ascent",
    "VREx": "interventions.vrex",
    "Tilted": "interventions.tilted",
    "ChiSquareDRO": "interventions.chi_square_dro",
    "GroupCVaR": "interventions.group_cvar",
    "NormalisedGradient": "interventions.normalised_gradient",
    "UPGrad": "interventions.upgrad",
    "GroupClipping": "interventions.group_clipping",
    "JacobianDescent": "interventions.jacobian_descent",
    "GeneralisedCrossEntropy": "interventions.generalised_cross_entropy",
    "SpectralDecoupling": "interventions.spectral_decoupling",
    "CVaR": "interventions.cvar",
    "SelecMix": "interventions.selec_mix",
    "Downsampled": "interventions.downsampled",
    "JTT": "interventions.jtt",
    "USEFUL": "interventions.useful",
    "Amplified": "interventions.amplified",
    "SAM": "interventions.sam",
    "GradientPenalty": "interventions.gradient_penalty",
    "DFR": "interventions.dfr",
    "Erasure": "interventions.erasure",
}

__all__ = offer(__name__, {**LAWS, **KINDS})  # noqa: PLE0605
