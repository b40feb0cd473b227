"""Measures of simplicity and of group bias, one file each; `shared` has code that several of them need.

>>> import tiltmeter_lab as lab
>>> lab.measures.EffectiveRank().title
'effective rank of features, their Gram matrix or a linear map'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter_lab.measures.aggregator_bias import AggregatorBias as AggregatorBias
    from tiltmeter_lab.measures.availability import Availability as Availability
    from tiltmeter_lab.measures.balancedness import Balancedness as Balancedness
    from tiltmeter_lab.measures.balancedness import imbalances as imbalances
    from tiltmeter_lab.measures.bias_amplification import BiasAmplification as BiasAmplification
    from tiltmeter_lab.measures.boolean_sensitivity import BooleanSensitivity as BooleanSensitivity
    from tiltmeter_lab.measures.boolean_spectrum import BooleanSpectrum as BooleanSpectrum
    from tiltmeter_lab.measures.catalogue import MEASURES as MEASURES
    from tiltmeter_lab.measures.circle import circle_eigenvalues as circle_eigenvalues
    from tiltmeter_lab.measures.circle import region_half_times as region_half_times
    from tiltmeter_lab.measures.class_collapse import ClassCollapse as ClassCollapse
    from tiltmeter_lab.measures.clone_accuracy import CLONES as CLONES
    from tiltmeter_lab.measures.clone_accuracy import CloneAccuracy as CloneAccuracy
    from tiltmeter_lab.measures.component_error import ComponentError as ComponentError
    from tiltmeter_lab.measures.cue_adoption import CueAdoption as CueAdoption
    from tiltmeter_lab.measures.early_alignment import EarlyAlignment as EarlyAlignment
    from tiltmeter_lab.measures.effective_rank import EffectiveRank as EffectiveRank
    from tiltmeter_lab.measures.effective_rank import Features as Features
    from tiltmeter_lab.measures.effective_rank import Gram as Gram
    from tiltmeter_lab.measures.effective_rank import LinearMap as LinearMap
    from tiltmeter_lab.measures.embedding_association import EmbeddingAssociation as EmbeddingAssociation
    from tiltmeter_lab.measures.exact_bias import ExactBias as ExactBias
    from tiltmeter_lab.measures.feature_variance import FeatureVariance as FeatureVariance
    from tiltmeter_lab.measures.frequency_error import FrequencyError as FrequencyError
    from tiltmeter_lab.measures.frequency_reliance import FrequencyReliance as FrequencyReliance
    from tiltmeter_lab.measures.gradient_noise import GradientNoise as GradientNoise
    from tiltmeter_lab.measures.gradient_pull import GradientPull as GradientPull
    from tiltmeter_lab.measures.group_giveaway import GroupGiveaway as GroupGiveaway
    from tiltmeter_lab.measures.guessing_bias import GuessingBias as GuessingBias
    from tiltmeter_lab.measures.individual_consistency import IndividualConsistency as IndividualConsistency
    from tiltmeter_lab.measures.infra_marginality import InfraMarginality as InfraMarginality
    from tiltmeter_lab.measures.kernel_spectrum import KernelSpectrum as KernelSpectrum
    from tiltmeter_lab.measures.last_layer_probe import LastLayerProbe as LastLayerProbe
    from tiltmeter_lab.measures.line_spectrum import LineSpectrum as LineSpectrum
    from tiltmeter_lab.measures.loss_slice import LossSlice as LossSlice
    from tiltmeter_lab.measures.matched import at_matched_error as at_matched_error
    from tiltmeter_lab.measures.measure import two_labels as two_labels
    from tiltmeter_lab.measures.minimum_norm import MinimumNorm as MinimumNorm
    from tiltmeter_lab.measures.network_complexity import NetworkComplexity as NetworkComplexity
    from tiltmeter_lab.measures.noise_sensitivity import NoiseSensitivity as NoiseSensitivity
    from tiltmeter_lab.measures.opposing_signals import OpposingSignals as OpposingSignals
    from tiltmeter_lab.measures.projection_dependence import FirstLayer as FirstLayer
    from tiltmeter_lab.measures.projection_dependence import Learned as Learned
    from tiltmeter_lab.measures.projection_dependence import ProjectionDependence as ProjectionDependence
    from tiltmeter_lab.measures.randomised import Randomised as Randomised
    from tiltmeter_lab.measures.shared.alignment_pull import Extremes as Extremes
    from tiltmeter_lab.measures.shared.alignment_pull import Pull as Pull
    from tiltmeter_lab.measures.shared.neurons import merged as merged
    from tiltmeter_lab.measures.shared.neurons import merged_distance as merged_distance
    from tiltmeter_lab.measures.shared.neurons import neurons_of as neurons_of
    from tiltmeter_lab.measures.sharpness import Sharpness as Sharpness
    from tiltmeter_lab.measures.stable_rank import StableRank as StableRank
    from tiltmeter_lab.measures.starvation import Starvation as Starvation
    from tiltmeter_lab.measures.subgroup_auc import SubgroupAUC as SubgroupAUC
    from tiltmeter_lab.measures.truncated_accuracy import TruncatedAccuracy as TruncatedAccuracy


__all__ = offer(__name__)  # noqa: PLE0605
