"""The catalogue of bias measures: the module of each. What a measure needs and costs is described in the measure
itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    import xarray as xr

    from tiltmeter.measures.snapshot import Snapshot

#: Name on the command line -> module and class. A module is imported only when it is needed.
MEASURES: dict[str, str] = {
    # spectral
    "frequency-error": "frequency_error:FrequencyError",
    "line-spectrum": "line_spectrum:LineSpectrum",
    "kernel-spectrum": "kernel_spectrum:KernelSpectrum",
    "frequency-reliance": "frequency_reliance:FrequencyReliance",
    # principal components
    "component-error": "component_error:ComponentError",
    "truncated-accuracy": "truncated_accuracy:TruncatedAccuracy",
    # few input directions
    "randomised": "randomised:Randomised",
    "low-dimensional-dependence": "projection_dependence:ProjectionDependence",
    # low-order statistics
    "distributional": "clone_accuracy:CloneAccuracy",
    # low rank
    "weight-rank": "stable_rank:StableRank",
    "balancedness": "balancedness:Balancedness",
    "effective-rank": "effective_rank:EffectiveRank",
    # low sensitivity
    "boolean-sensitivity": "boolean_sensitivity:BooleanSensitivity",
    "boolean-spectrum": "boolean_spectrum:BooleanSpectrum",
    "noise-sensitivity": "noise_sensitivity:NoiseSensitivity",
    # few aligned neurons
    "early-alignment": "early_alignment:EarlyAlignment",
    # shortcuts
    "last-layer-probe": "last_layer_probe:LastLayerProbe",
    "cue-adoption": "cue_adoption:CueAdoption",
    "availability": "availability:Availability",
    "feature-variance": "feature_variance:FeatureVariance",
    "gradient-starvation": "starvation:Starvation",
    "group-giveaway": "group_giveaway:GroupGiveaway",
    # groups and classes
    "gradient-pull": "gradient_pull:GradientPull",
    "opposing-signals": "opposing_signals:OpposingSignals",
    "bias-amplification": "bias_amplification:BiasAmplification",
    "subgroup-auc": "subgroup_auc:SubgroupAUC",
    "infra-marginality": "infra_marginality:InfraMarginality",
    "guessing-bias": "guessing_bias:GuessingBias",
    "aggregator-bias": "aggregator_bias:AggregatorBias",
    "individual-consistency": "individual_consistency:IndividualConsistency",
    "embedding-association": "embedding_association:EmbeddingAssociation",
    "class-collapse": "class_collapse:ClassCollapse",
    # geometry and complexity
    "sharpness": "sharpness:Sharpness",
    "loss-slice": "loss_slice:LossSlice",
    "gradient-noise": "gradient_noise:GradientNoise",
    "minimum-norm": "minimum_norm:MinimumNorm",
    "network-complexity": "network_complexity:NetworkComplexity",
    "exact-bias": "exact_bias:ExactBias",
}


class BiasMeasure(Protocol):
    """A frozen dataclass with its options as fields, called with a snapshot.

    Every curve `x` that it returns comes with its null value, the value that you would read if there were no effect.
    Where it can be computed (chance, a linear model, shuffled labels) it is a curve `x_null`; otherwise it is described
    by an attribute "null" ("value at initialisation").

    A method `passes(snapshot)` says what one observation costs in forward passes over the held-out points; a backward
    pass counts as two. A measure of the scores alone has no such method, because these are known.

    If the digits and a small network are not suitable for a measure, it may have a class method `example(seed)` that
    returns its own (measure, model, data). The example should be small and take at most a second. `measures/example.py`
    calls it; so do the tests of all measures and `tiltmeter measure` without a file.
    """

    #: One line: what is measured.
    title: ClassVar[str]
    #: What the model and the data must have, in words.
    takes: ClassVar[str]
    #: Where the number is exact, in words.
    exact: ClassVar[str]
    #: When the bias does not appear, in words.
    absent: ClassVar[str]
    #: Whether the weights of points count. A measure that does not say so counts every point once.
    weighs: ClassVar[bool] = False

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]: ...


def forward_passes(measure: Any, snapshot: Snapshot) -> float:
    """What a measure says that one observation costs, in forward passes; 0 if it says nothing.

    >>> forward_passes(find("subgroup-auc")(), None)
    0.0
    """
    return float(measure.passes(snapshot)) if hasattr(measure, "passes") else 0.0


def find(name: str) -> Any:
    """The class of the measure with this name.

    >>> try:
    ...     find("gravity")
    ... except KeyError as error:
    ...     print(error.args[0].split(".")[0])
    No measure 'gravity'
    """
    if name not in MEASURES:
        raise KeyError(f"No measure {name!r}. There are: {', '.join(MEASURES) or 'none'}.")
    module, kind = MEASURES[name].split(":")
    return getattr(import_module(f"tiltmeter_lab.measures.{module}"), kind)
