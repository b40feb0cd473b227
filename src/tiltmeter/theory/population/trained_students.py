"""Trained students: all their curves, computed from their overlaps, for theory and simulation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.losses import Loss
from tiltmeter.names import described
from tiltmeter.theory.population.channel import channel, score_intervention
from tiltmeter.theory.population.fairness import disparate_impact, equalised_odds, gap, pair_name
from tiltmeter.theory.population.rates import rates

RATES = ("error", "positive_rate", "tpr", "fpr", "ppv")
#: How many score distributions are averaged together.
CHUNK = 512


@dataclass(frozen=True)
class TrainedStudents:
    """Overlaps of N students (or tuples of coupled ones) with G groups, each of shape (N, G).

    p: share of the group; D: variance; a: label threshold; M, R, Q, bias: overlaps of the student that scores it.
    """

    p: np.ndarray
    D: np.ndarray
    a: np.ndarray
    M: np.ndarray
    R: np.ndarray
    Q: np.ndarray
    bias: np.ndarray


def by_formula(rest: TrainedStudents, loss: Loss) -> dict[str, np.ndarray]:
    """Loss and rates over the whole population, each (N, G), without a test set."""
    column = (-1, 1)
    found = rates(
        rest.M.reshape(-1, 1, 1),
        rest.R.reshape(-1, 1, 1),
        rest.Q.reshape(column),
        rest.bias.reshape(column),
        rest.D.reshape(column),
        rest.a.reshape(column),
    )
    shares = {name: getattr(found, name).reshape(rest.M.shape) for name in RATES}
    return {"loss": population_loss(rest, loss), **shares}


def labelled_observables(
    rest: TrainedStudents,
    per_group: Mapping[str, np.ndarray],
    loss: Loss,
    label: Callable[..., xr.DataArray],
    shared: bool,
    bias: bool,
) -> dict[str, xr.DataArray]:
    """All curves by name, from overlaps and from loss and rates per group.

    `label(values, *dims)` names the axes of an array of shape (N, ...). `shared`: all groups have the same student, so
    Q and its bias have no group dimension.
    """
    raw = {name: label(values, "group") for name, values in per_group.items()}
    raw["risk"] = label((rest.p * per_group["loss"]).sum(1))
    raw["population_error"] = label((rest.p * per_group["error"]).sum(1))
    raw["M"], raw["R"] = label(rest.M, "group"), label(rest.R, "group")
    raw["Q"] = label(rest.Q[:, 0]) if shared else label(rest.Q, "group")
    if bias:
        raw["student_bias"] = label(rest.bias[:, 0]) if shared else label(rest.bias, "group")
    for name in ("loss", *RATES):
        raw[f"{name}_gap"] = gap(raw[name])
    raw["equalised_odds"] = equalised_odds(raw["tpr"], raw["fpr"])
    raw["disparate_impact"] = disparate_impact(raw["positive_rate"])
    return {name: named(name, curve, loss) for name, curve in raw.items()}


def between_students(
    students: np.ndarray, groups: tuple[Hashable, ...], label: Callable[..., xr.DataArray]
) -> xr.DataArray:
    """`student_overlap` of every pair of groups, from the overlaps (N, G, G) of their students."""
    first, second = np.triu_indices(len(groups), 1)
    pairs = np.array([pair_name(groups[i], groups[j]) for i, j in zip(first, second, strict=True)], dtype=str)
    curve = label(students[:, first, second], "pair", pair=pairs)
    return described("student_overlap", curve)


def named(name: str, curve: xr.DataArray, loss: Loss) -> xr.DataArray:
    """The curve with its meaning from the glossary; losses also get their definition."""
    curve = described(name, curve)
    if name in ("loss", "risk", "training_loss"):
        long_name = {"loss": "", "risk": " over the population", "training_loss": " of the training examples"}[name]
        curve = curve.assign_attrs(long_name=loss.definition + long_name, definition=loss.definition)
    return curve


def population_loss(rest: TrainedStudents, loss: Loss) -> np.ndarray:
    """The mean loss of a fresh example in each group, shape (N, G)."""
    flat: list[Any] = [part.reshape(-1) for part in (rest.M, rest.R, rest.Q, rest.bias, rest.D, rest.a)]
    kinks = np.outer([1.0, -1.0], np.array(loss.kinks)) if loss.kinks else None
    out = np.empty(rest.M.size)
    for start in range(0, len(out), CHUNK):
        here = slice(start, start + CHUNK)
        M, R, Q, bias, D, a = (part[here] for part in flat)
        cuts = None if kinks is None else np.broadcast_to(kinks, (len(M), *kinks.shape))
        law = channel(*score_intervention(M, R, Q, bias, D), a, cuts)
        out[here] = law.mean(loss.value(law.score, law.label))
    return out.reshape(rest.M.shape)
