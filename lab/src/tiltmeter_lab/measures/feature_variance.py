"""feature-variance: how much of a representation each feature explains (Lampinen et al., 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.shared.layer_features import layer_features


@dataclass(frozen=True, eq=False)
class FeatureVariance:
    """Share of the variance of the last hidden features that a linear regression on each given feature explains.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> bits = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)] * 20)
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 1))
    >>> model[0].weight.data = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> data = tm.GroupedData(bits, bits[:, 0], "label")
    >>> measure = FeatureVariance({"first": bits[:, 0], "second": bits[:, 1]})
    >>> lab.measure(measure, model, data)["feature_variance"].values.round(3).tolist()
    [0.9, 0.1]

    `features` maps names to one number (or one row) per held-out point; the default is the label and the group, as
    classes. Every unit is centred and regressed on the feature. The explained variances are added over units and
    divided by the total. The null value is what k independent columns explain by chance, k / (n - 1).

    What it does not mean: a small share does not mean that a feature is not computed or not used. Features that are
    learned equally well have very unequal shares; simpler ones have larger shares. Shares of correlated features
    overlap and may add up to more than 1: choose points on which the features are independent and balanced.

    Args:
        features: One number or row per held-out point, by name; None: the label and the group, as classes.
        layer: Name of the layer whose input is used; None: the last Linear layer.
    """

    features: Mapping[str, np.ndarray] | None = None
    layer: str | None = None
    title: ClassVar[str] = "How much of the last hidden features each input feature explains"
    takes: ClassVar[str] = "Any model with a Linear layer (or a named one), and features of the held-out points"
    exact: ClassVar[str] = "On the held-out points, if the features are independent there"
    absent: ClassVar[str] = "Features of equal complexity have equal shares"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data = snapshot.data
        given = self.features or {"label": _classes(data.y), "group": _classes(data.codes)}
        for name, values in given.items():
            if len(values) != len(data):
                raise ValueError(
                    f"`features` should have one row per held-out point, {len(data)}. Found {len(values)} in {name!r}."
                )
        hidden = layer_features(snapshot.model, snapshot.model.x, self.layer)
        found = np.array([explained(hidden, np.asarray(values, dtype=float)) for values in given.values()])
        ranks = np.array([_rank(np.asarray(values, dtype=float)) for values in given.values()])
        null = np.minimum(1.0, ranks / max(1, len(data) - 1))
        feature = {"feature": np.asarray(list(given))}
        return {
            "feature_variance": snapshot.reading(
                "feature_variance",
                found,
                feature,
                long_name="share of the variance of the last features that this feature explains",
                better="neither",
            ),
            "feature_variance_null": snapshot.reading(
                "feature_variance_null", null, feature, long_name="share that it explains by chance", better="neither"
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        return 1.0


def explained(hidden: np.ndarray, feature: np.ndarray) -> float:
    """Share of the variance of all columns of `hidden` that a regression on the feature explains; 0 if none."""
    centred = hidden - hidden.mean(0)
    total = float((centred**2).sum())
    columns = _centred(feature)
    if total <= 0 or not len(columns.T):
        return 0.0
    basis, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    basis = basis[:, sizes > 1e-10 * max(1.0, sizes.max(initial=0.0))]
    return float(((basis.T @ centred) ** 2).sum() / total)


def _centred(feature: np.ndarray) -> np.ndarray:
    columns = feature.reshape(len(feature), -1)
    return np.asarray(columns - columns.mean(0))


def _rank(feature: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(_centred(feature)))


def _classes(labels: np.ndarray) -> np.ndarray:
    return np.asarray(labels[:, None] == np.unique(labels), dtype=float)
