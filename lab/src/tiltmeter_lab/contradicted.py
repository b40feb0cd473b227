"""contradicted: of every claim that is contradicted, what a second setting says, or why the claim is only ours."""

from __future__ import annotations

from collections.abc import Sequence

from tiltmeter_lab.claim import Claim

#: The experiment that tests contradicted claims in a second setting: their sentences go on with what is different.
SECOND = "second-settings"

#: Claims that no paper makes: why they were asked, and what was seen instead, by experiment and beginning.
OURS: dict[str, dict[str, str]] = {
    "utkface-ages": {
        "Age over 40 by sex": "Ours: no paper says it of these faces. Women lead throughout, because fewer of their "
        "faces are over 40 and the network begins with one answer for everybody.",
    },
    "utkface-tools": {
        "Balancing the races": "Ours: the race that is judged worst here is also the most frequent one, so that equal "
        "weights count it less.",
    },
    "memorisation": {
        "Networks on Fashion-MNIST: noise": "Ours, taken over from the exact theory of linear students. In these "
        "networks wrong labels in the minority cost the minority most, and the majority nothing.",
    },
    "edge-of-stability": {
        "That one side of them": "Ours, a warning: a linear model, in which nothing swings, shows it just as well, so "
        "it is no evidence of the edge.",
    },
    "principal-components": {
        "Control: gradient noise": "Ours, a control that fails: labels are exactly linear here, so that the noise "
        "vanishes with the error and hides nothing.",
    },
    "shortcuts": {
        "It bends the boundary only there": "Ours: published is that the penalty helps a starved feature, which is "
        "clear; it bends other boundaries just as much.",
    },
    "optimiser-or-speed": {
        "Adam on toy": "Ours: on the toy Adam takes another path than SGD, as the last row of that experiment says.",
    },
    "cures": {
        "The ranking on one task": "Ours: a warning that proved too strong. These tasks all have one shortcut and "
        "known groups, and what helps on one of them helps on the others.",
    },
    "bias-atlas": {
        "The bias of principal components": "Ours: a question about the end of all trainings. Early it shows in 98 % "
        "of the settings; at the end the small components have been learned, too.",
        "The bias of shortcut": "Ours: a question about all settings. At matched loss the data explain most of its "
        "variance.",
        "The bias of few directions": "Ours: a question about all settings. The architecture explains the largest "
        "part of its variance.",
        "The bias of low-rank weights": "Ours: a question about all settings. Architecture and optimiser explain "
        "most of its variance.",
        "The bias of aligned neurons": "Ours: it is known of tiny initial weights, and here they have half or one "
        "and a half times the usual size.",
        "The bias of flatness": "Ours: measured against the untrained network, and training makes most networks "
        "sharper.",
    },
}


def checked_again(experiment: str, claim: Claim, claims: Sequence[tuple[str, Claim]]) -> list[Claim] | str:
    """The claims that test a contradicted one in a second setting; else why it is ours, "" if neither is known."""
    again = [
        other
        for name, other in claims
        if name == SECOND and experiment != SECOND and other.sentence.startswith(f"{claim.sentence} (")
    ]
    reasons = OURS.get(experiment, {})
    return again or next((text for start, text in reasons.items() if claim.sentence.startswith(start)), "")
