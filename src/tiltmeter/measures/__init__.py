"""Measures: what is read off a model at one look.

A measure is a function of a `Snapshot`, which holds all that it may see, and returns curves by name. Those that come by
default are in `default_curves`; any function f(y_true, y_score) becomes one with `GroupMetric`.

>>> import numpy as np
>>> from tiltmeter.measures.group_metric import GroupMetric
>>> GroupMetric(lambda y_true, y_score: float(np.mean(y_score)), "mean_score", better="neither").name
'mean_score'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.measures.group_metric import GroupMetric as GroupMetric
    from tiltmeter.measures.named.availability import Availability as Availability
    from tiltmeter.measures.named.balancedness import Balancedness as Balancedness
    from tiltmeter.measures.named.bias_amplification import BiasAmplification as BiasAmplification
    from tiltmeter.measures.named.boolean_sensitivity import BooleanSensitivity as BooleanSensitivity
    from tiltmeter.measures.named.boolean_spectrum import BooleanSpectrum as BooleanSpectrum
    from tiltmeter.measures.named.clone_accuracy import CloneAccuracy as CloneAccuracy
    from tiltmeter.measures.named.component_error import ComponentError as ComponentError
    from tiltmeter.measures.named.cue_adoption import CueAdoption as CueAdoption
    from tiltmeter.measures.named.early_alignment import EarlyAlignment as EarlyAlignment
    from tiltmeter.measures.named.effective_rank import EffectiveRank as EffectiveRank
    from tiltmeter.measures.named.exact_bias import ExactBias as ExactBias
    from tiltmeter.measures.named.feature_variance import FeatureVariance as FeatureVariance
    from tiltmeter.measures.named.frequency_error import FrequencyError as FrequencyError
    from tiltmeter.measures.named.gradient_noise import GradientNoise as GradientNoise
    from tiltmeter.measures.named.gradient_pull import GradientPull as GradientPull
    from tiltmeter.measures.named.infra_marginality import InfraMarginality as InfraMarginality
    from tiltmeter.measures.named.kernel_spectrum import KernelSpectrum as KernelSpectrum
    from tiltmeter.measures.named.last_layer_probe import LastLayerProbe as LastLayerProbe
    from tiltmeter.measures.named.line_spectrum import LineSpectrum as LineSpectrum
    from tiltmeter.measures.named.network_complexity import NetworkComplexity as NetworkComplexity
    from tiltmeter.measures.named.noise_sensitivity import NoiseSensitivity as NoiseSensitivity
    from tiltmeter.measures.named.opposing_signals import OpposingSignals as OpposingSignals
    from tiltmeter.measures.named.projection_dependence import ProjectionDependence as ProjectionDependence
    from tiltmeter.measures.named.randomised import Randomised as Randomised
    from tiltmeter.measures.named.sharpness import Sharpness as Sharpness
    from tiltmeter.measures.named.stable_rank import StableRank as StableRank
    from tiltmeter.measures.named.starvation import Starvation as Starvation
    from tiltmeter.measures.named.subgroup_auc import SubgroupAUC as SubgroupAUC
    from tiltmeter.measures.named.truncated_accuracy import TruncatedAccuracy as TruncatedAccuracy
    from tiltmeter.measures.snapshot import Measure as Measure
    from tiltmeter.measures.snapshot import Snapshot as Snapshot
    from tiltmeter.measures.sometimes import Sometimes as Sometimes

_HOMES = {
    "GroupMetric": "measures.group_metric",
    "Measure": "measures.snapshot",
    "Snapshot": "measures.snapshot",
    "Sometimes": "measures.sometimes",
    "Availability": "measures.named.availability",
    "Balancedness": "measures.named.balancedness",
    "BiasAmplification": "measures.named.bias_amplification",
    "BooleanSensitivity": "measures.named.boolean_sensitivity",
    "BooleanSpectrum": "measures.named.boolean_spectrum",
    "CloneAccuracy": "measures.named.clone_accuracy",
    "ComponentError": "measures.named.component_error",
    "CueAdoption": "measures.named.cue_adoption",
    "EarlyAlignment": "measures.named.early_alignment",
    "EffectiveRank": "measures.named.effective_rank",
    "ExactBias": "measures.named.exact_bias",
    "FeatureVariance": "measures.named.feature_variance",
    "FrequencyError": "measures.named.frequency_error",
    "GradientNoise": "measures.named.gradient_noise",
    "GradientPull": "measures.named.gradient_pull",
    "InfraMarginality": "measures.named.infra_marginality",
    "KernelSpectrum": "measures.named.kernel_spectrum",
    "LastLayerProbe": "measures.named.last_layer_probe",
    "LineSpectrum": "measures.named.line_spectrum",
    "NetworkComplexity": "measures.named.network_complexity",
    "NoiseSensitivity": "measures.named.noise_sensitivity",
    "OpposingSignals": "measures.named.opposing_signals",
    "ProjectionDependence": "measures.named.projection_dependence",
    "Randomised": "measures.named.randomised",
    "Sharpness": "measures.named.sharpness",
    "StableRank": "measures.named.stable_rank",
    "Starvation": "measures.named.starvation",
    "SubgroupAUC": "measures.named.subgroup_auc",
    "TruncatedAccuracy": "measures.named.truncated_accuracy",
}

__all__ = offer(__name__, _HOMES)  # noqa: PLE0605
