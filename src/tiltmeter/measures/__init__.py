"""Measures: what is recorded about a model at one moment.

>>> import numpy as np
>>> from tiltmeter.measures.group_metric import GroupMetric
>>> GroupMetric(lambda y_true, y_score: float(np.mean(y_score)), "mean_score", better="neither").name
'mean_score'

A measure is a function of a `Snapshot`, which holds everything that the measure may use. It returns curves by name. The
default measures are in `default_curves`; `GroupMetric` turns any function f(y_true, y_score) into a measure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.measures.catalogue import MEASURES as MEASURES
    from tiltmeter.measures.group_metric import GroupMetric as GroupMetric
    from tiltmeter.measures.group_metric import Sometimes as Sometimes
    from tiltmeter.measures.matched import at_matched_error as at_matched_error
    from tiltmeter.measures.measure import two_labels as two_labels
    from tiltmeter.measures.named.aggregator_bias import AggregatorBias as AggregatorBias
    from tiltmeter.measures.named.availability import Availability as Availability
    from tiltmeter.measures.named.balancedness import Balancedness as Balancedness
    from tiltmeter.measures.named.balancedness import imbalances as imbalances
    from tiltmeter.measures.named.bias_amplification import BiasAmplification as BiasAmplification
    from tiltmeter.measures.named.boolean_sensitivity import BooleanSensitivity as BooleanSensitivity
    from tiltmeter.measures.named.boolean_spectrum import BooleanSpectrum as BooleanSpectrum
    from tiltmeter.measures.named.class_collapse import ClassCollapse as ClassCollapse
    from tiltmeter.measures.named.clone_accuracy import CLONES as CLONES
    from tiltmeter.measures.named.clone_accuracy import CloneAccuracy as CloneAccuracy
    from tiltmeter.measures.named.component_error import ComponentError as ComponentError
    from tiltmeter.measures.named.cue_adoption import CueAdoption as CueAdoption
    from tiltmeter.measures.named.early_alignment import EarlyAlignment as EarlyAlignment
    from tiltmeter.measures.named.effective_rank import EffectiveRank as EffectiveRank
    from tiltmeter.measures.named.effective_rank import Features as Features
    from tiltmeter.measures.named.effective_rank import Gram as Gram
    from tiltmeter.measures.named.effective_rank import LinearMap as LinearMap
    from tiltmeter.measures.named.embedding_association import EmbeddingAssociation as EmbeddingAssociation
    from tiltmeter.measures.named.exact_bias import ExactBias as ExactBias
    from tiltmeter.measures.named.feature_variance import FeatureVariance as FeatureVariance
    from tiltmeter.measures.named.frequency_error import FrequencyError as FrequencyError
    from tiltmeter.measures.named.frequency_reliance import FrequencyReliance as FrequencyReliance
    from tiltmeter.measures.named.gradient_noise import GradientNoise as GradientNoise
    from tiltmeter.measures.named.gradient_pull import GradientPull as GradientPull
    from tiltmeter.measures.named.group_giveaway import GroupGiveaway as GroupGiveaway
    from tiltmeter.measures.named.guessing_bias import GuessingBias as GuessingBias
    from tiltmeter.measures.named.individual_consistency import IndividualConsistency as IndividualConsistency
    from tiltmeter.measures.named.infra_marginality import InfraMarginality as InfraMarginality
    from tiltmeter.measures.named.kernel_spectrum import KernelSpectrum as KernelSpectrum
    from tiltmeter.measures.named.last_layer_probe import LastLayerProbe as LastLayerProbe
    from tiltmeter.measures.named.line_spectrum import LineSpectrum as LineSpectrum
    from tiltmeter.measures.named.loss_slice import LossSlice as LossSlice
    from tiltmeter.measures.named.minimum_norm import MinimumNorm as MinimumNorm
    from tiltmeter.measures.named.network_complexity import NetworkComplexity as NetworkComplexity
    from tiltmeter.measures.named.noise_sensitivity import NoiseSensitivity as NoiseSensitivity
    from tiltmeter.measures.named.opposing_signals import OpposingSignals as OpposingSignals
    from tiltmeter.measures.named.projection_dependence import FirstLayer as FirstLayer
    from tiltmeter.measures.named.projection_dependence import Learned as Learned
    from tiltmeter.measures.named.projection_dependence import ProjectionDependence as ProjectionDependence
    from tiltmeter.measures.named.randomised import Randomised as Randomised
    from tiltmeter.measures.named.sharpness import Sharpness as Sharpness
    from tiltmeter.measures.named.stable_rank import StableRank as StableRank
    from tiltmeter.measures.named.starvation import Starvation as Starvation
    from tiltmeter.measures.named.subgroup_auc import SubgroupAUC as SubgroupAUC
    from tiltmeter.measures.named.truncated_accuracy import TruncatedAccuracy as TruncatedAccuracy
    from tiltmeter.measures.shared.alignment_pull import Extremes as Extremes
    from tiltmeter.measures.shared.alignment_pull import Pull as Pull
    from tiltmeter.measures.shared.neurons import merged as merged
    from tiltmeter.measures.shared.neurons import merged_distance as merged_distance
    from tiltmeter.measures.shared.neurons import neurons_of as neurons_of
    from tiltmeter.measures.snapshot import Measure as Measure
    from tiltmeter.measures.snapshot import Snapshot as Snapshot
    from tiltmeter.modules.tangent.circle import circle_eigenvalues as circle_eigenvalues
    from tiltmeter.modules.tangent.circle import region_half_times as region_half_times


__all__ = offer(__name__)  # noqa: PLE0605
