"""Default curves: the eight measures that every probe records, each a function of a `Snapshot`."""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.measures.order_parameters import order_parameters
from tiltmeter.measures.snapshot import Measure, Snapshot, group_mean, shares


def loss(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Mean loss per group, with its standard error if the loss of each point is known; no curve for decisions
    without scores.
    """
    attrs = {"long_name": snapshot.definition, "better": "lower", "definition": snapshot.definition}
    if snapshot.loss is None:
        if snapshot.group_loss is None:
            return {}  # only decisions are known
        return {"loss": snapshot.by_group("loss", np.asarray(snapshot.group_loss, dtype=float), **attrs)}
    mean, error = group_mean(snapshot.loss, snapshot.data)
    return {"loss": snapshot.by_group("loss", mean, **attrs), "loss_se": snapshot.by_group("loss_se", error)}


def error(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share of wrong decisions; no curve for regression."""
    if snapshot.decision is None:
        return {}
    return snapshot.share("error", snapshot.decision != snapshot.data.y)


def squared_error(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Mean of (score - y)^2, twice the loss `Square`; no curve if the model decides between labels."""
    if snapshot.task.decides or snapshot.score is None:
        return {}
    return snapshot.mean("squared_error", (snapshot.score - snapshot.data.y) ** 2)


def margin(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """One output: distance from the threshold, negative if wrong. Several: score of the label minus the best other
    score.
    """
    return {} if snapshot.margin is None else snapshot.mean("margin", snapshot.margin)


def confidence(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Mean probability that the model gives to its own decisions, and this mean minus the share of right decisions.

    A calibration gap of 0 does not mean that the model is calibrated: errors of opposite sign may cancel.
    """
    if snapshot.confidence is None or snapshot.decision is None:
        return {}
    right = snapshot.decision == snapshot.data.y
    return {
        **snapshot.mean("confidence", snapshot.confidence),
        **snapshot.mean("calibration_gap", snapshot.confidence - right),
    }


def rates(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share decided positive: of all points, of the positives and of the negatives of each group (NaN if there are
    none).
    """
    if snapshot.decision is None or not snapshot.task.binary:
        return {}
    decided = snapshot.decision == snapshot.task.positive
    positive = snapshot.data.y == snapshot.task.positive
    return {
        **snapshot.share("positive_rate", decided),
        **snapshot.share("tpr", decided, positive),
        **snapshot.share("fpr", decided, ~positive),
    }


#: With more classes than this, a table of classes and groups is too large to read.
MOST = 100


def class_accuracy(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """Share of each class decided right (NaN if the group has none of it). For two labels see `tpr` and `fpr`."""
    labels = snapshot.task.labels
    if snapshot.decision is None or not 2 < len(labels) <= MOST:
        return {}
    data, shape = snapshot.data, (len(snapshot.data.groups), len(labels))
    mass = np.ones(len(data)) if data.weights is None else data.weights
    cells = data.codes * len(labels) + data.y.astype(np.int64)  # labels of several outputs are 0, 1, 2, ...
    share, error = shares(snapshot.decision == data.y, mass, cells, shape[0] * shape[1])
    coords = {"group": data.group_labels, "class": np.asarray(labels)}
    return {
        "class_accuracy": snapshot.reading("class_accuracy", share.reshape(shape), coords),
        "class_accuracy_se": snapshot.reading("class_accuracy_se", error.reshape(shape), coords),
    }


#: What a probe records by default.
DEFAULTS: tuple[Measure, ...] = (
    loss,
    error,
    squared_error,
    margin,
    confidence,
    rates,
    class_accuracy,
    order_parameters,
)
