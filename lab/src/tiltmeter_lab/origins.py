"""Origins: where each claim comes from. Only a claim that was published, in a setting close to it, is reproduced."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tiltmeter_lab.claim import Claim

Origin = Literal["published", "published, other setting", "ours"]
ORIGINS: tuple[Origin, ...] = ("published", "published, other setting", "ours")
PUBLISHED, OTHER, OURS = ORIGINS

#: Words in a sentence that mark a check of ours, in any experiment.
CHECKS = ("(control)", "Control")

#: The origin of the claims of an experiment. What is not listed is ours.
OF_EXPERIMENT: dict[str, Origin] = {
    **dict.fromkeys(
        (
            "order-parameters",
            "spurious-correlation",
            "bias-crossing",
            "three-phases",
            "phase-diagram",
            "deeper-wider",
            "other-protocols",
            "learning-rates",
            "equilibrium-bias",
            "cifar-groups",
            "rotated-mnist",
            "spectral-1d",
            "spectral-kernel",
            "low-dimensional-dependence",
            "low-rank-weights",
            "incremental-rank",
            "early-alignment",
            "four-neurons",
            "growth-phase",
            "random-networks",
        ),
        PUBLISHED,
    ),
    **dict.fromkeys(
        (
            "overparametrisation-gap",
            "pipeline-atlas",
            "second-settings",
            "two-stage-inference",
            "late-reopening",
            "erasure-reverses",
            "cures",
            "bar-actions",
            "celeba-pairs",
            "spectral-interpolation",
            "spectral-double-descent",
            "principal-components",
            "distributional",
            "low-rank-embeddings",
            "low-sensitivity",
            "bias-spot-checks",
            "domino",
            "shortcuts",
            "diffroar",
            "minority-drop",
            "hessian-rank",
            "edge-of-stability",
            "group-measures",
        ),
        OTHER,
    ),
}

#: Claims of another origin than their experiment, by the beginning of the sentence.
OF_CLAIM: dict[str, dict[str, Origin]] = {
    "bias-crossing": {"A linear module": OURS, "The crossing survives": OTHER, "Errors of centred": OURS},
    "learning-rates": {"Losses cross at": OURS},
    "equilibrium-bias": {"Students coupled": OTHER, "The theory describes": OURS},
    "overparametrisation-gap": {"Students of random features": OURS, "Both groups have their peak": OURS},
    "pipeline-atlas": {
        "Which examples come first": OURS,
        "At least half of the final gap": OURS,
        "Luck decides": OURS,
        "A random forest": OURS,
    },
    "cures": {
        "The ranking on one task": OURS,
        "A gain of the worst group": OURS,
        "No ": OURS,
    },
    "bar-actions": {"JTT": OURS, "PrunedEasy": OURS, "SpectralDecoupling": OURS},
    "low-sensitivity": {"Fitting noisy labels": OURS},
    "shortcuts": {"It bends the boundary only there": OURS},
    "group-measures": {"What the groups pull": OURS, "Random networks": OURS},
    "edge-of-stability": {"That one side": OURS, "No loss is sharper": OURS, "A linear model has": OURS},
    "low-dimensional-dependence": {"A network that cannot": OURS, "Yet the first layer": OURS},
}

#: Experiments whose numbers without seeds are computed by exact theory, and so have no error.
OF_THEORY = (
    "spurious-correlation",
    "bias-crossing",
    "three-phases",
    "phase-diagram",
    "learning-rates",
    "equilibrium-bias",
    "memorisation",
    "multi-class",
    "warm-start",
    "order-of-groups",
    "overparametrisation-gap",
    "group-dro-rings",
    "upweight-or-upsample",
    "equalising-weights",
    "no-go",
    "normalised-gradients",
    "levelling-down",
)


def with_exact(experiment: str, claim: Claim) -> Claim:
    """The claim, with an error of 0 if its number is computed by exact theory."""
    exact = experiment in OF_THEORY and claim.seeds == 1 and claim.error is None and claim.trials is None
    return replace(claim, error=0.0) if exact else claim


def origin_of(experiment: str, sentence: str) -> Origin:
    """Return where a claim comes from.

    >>> origin_of("bias-crossing", "A linear module crosses, too"), origin_of("bias-crossing", "Losses cross once")
    ('ours', 'published')
    """
    if any(word in sentence for word in CHECKS):
        return OURS
    for start, origin in OF_CLAIM.get(experiment, {}).items():
        if sentence.startswith(start):
            return origin
    return OF_EXPERIMENT.get(experiment, OURS)
