"""The glossary of curve names: what each curve means and which direction is better."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import xarray as xr

#: The label where no group leads, because the best are equal or there are no values.
NOBODY = ""

Better: TypeAlias = Literal["lower", "higher", "neither"]


class CurveName(NamedTuple):
    """What a curve name means, everywhere in tiltmeter."""

    meaning: str
    better: Better = "neither"


CURVES: dict[str, CurveName] = {
    # per group
    "loss": CurveName("half squared error", "lower"),
    "error": CurveName("share of wrong decisions", "lower"),
    "positive_rate": CurveName("share decided positive", "higher"),
    "tpr": CurveName("share of positives decided positive", "higher"),
    "fpr": CurveName("share of negatives decided positive", "lower"),
    "ppv": CurveName("share of positive decisions that are right", "higher"),
    "squared_error": CurveName("squared difference between score and label", "lower"),
    "margin": CurveName("margin of the right label, negative if the decision is wrong", "higher"),
    "confidence": CurveName("probability that the model gives to its own decision"),
    "calibration_gap": CurveName("confidence minus share of right decisions"),
    "class_loss": CurveName("loss of the inputs of a class", "lower"),
    "confusion": CurveName("share of a class decided to be of this class"),
    "class_accuracy": CurveName("share of a class decided right", "higher"),
    # per group, on the training examples
    "training_loss": CurveName("loss on the training examples", "lower"),
    "training_error": CurveName("share of wrong decisions on the training examples", "lower"),
    "batch_noise": CurveName("loss that small batches add to that of gradient flow", "lower"),
    # of a forecast from the kernel
    "sample_error": CurveName("half the difference of the losses from two halves of the sample"),
    # of the student
    "M": CurveName("overlap of student and group mean"),
    "R": CurveName("overlap of student and group teacher"),
    "Q": CurveName("squared length of the student divided by d"),
    "label_alignment": CurveName("cosine between scores and labels", "higher"),
    "student_bias": CurveName("offset that the student adds to its score"),
    "second_layer": CurveName("weight of each unit in the student's score"),
    # of an intervention
    "pull": CurveName("what the mean gradient of a group counts in a step"),
    # variance over runs at finite d, see `moments`
    "M_variance": CurveName("variance over runs of the overlap with the group mean"),
    "R_variance": CurveName("variance over runs of the overlap with the group teacher"),
    "student_bias_variance": CurveName("variance over runs of the student's offset"),
    "student_overlap": CurveName("overlap of the students of two groups"),
    # of the population
    "risk": CurveName("loss averaged over the population", "lower"),
    "population_error": CurveName("error averaged over the population", "lower"),
    # between two groups, first minus second
    "loss_gap": CurveName("difference of losses"),
    "error_gap": CurveName("difference of errors (accuracy parity)"),
    "positive_rate_gap": CurveName("difference of positive rates (statistical parity)"),
    "tpr_gap": CurveName("difference of true positive rates (equal opportunity)"),
    "fpr_gap": CurveName("difference of false positive rates"),
    "ppv_gap": CurveName("difference of precisions (predictive parity)"),
    "equalised_odds": CurveName("larger of the absolute tpr and fpr gaps", "lower"),
    # over all groups
    "disparate_impact": CurveName("smallest positive rate divided by the largest", "higher"),
    # contributions to the loss gap (Shapley values), see `drivers`
    "shift": CurveName("part of the gap due to shift and label imbalance"),
    "variance": CurveName("part of the gap due to unequal variances"),
    "representation": CurveName("part of the gap due to unequal representation"),
    "rest": CurveName("part of the gap due to teachers, start and loss weights"),
}


def described(name: str, curve: xr.DataArray) -> xr.DataArray:
    """The curve with `long_name` and `better` in its attributes, from the glossary.

    >>> described("error", xr.DataArray(0.1)).attrs["better"]
    'lower'
    """
    if name not in CURVES:
        return curve
    meaning, better = CURVES[name]
    return curve.assign_attrs(long_name=meaning, better=better, **({"definition": meaning} if name == "loss" else {}))


def better_of(name: str, curve: xr.DataArray) -> Better:
    """Which direction is better for this curve: from its own attribute, otherwise from the glossary."""
    better: Better = curve.attrs.get("better", CURVES[name].better if name in CURVES else "neither")
    if better not in ("lower", "higher", "neither"):
        raise ValueError(f'Curve {name!r} says better = {better!r}; it should be "lower", "higher" or "neither".')
    return better
