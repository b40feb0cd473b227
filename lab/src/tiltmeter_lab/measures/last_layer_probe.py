"""last-layer-probe: how well a linear probe predicts a label from the features from which the model decides."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.shared.layer_features import layer_features


@dataclass(frozen=True, eq=False)
class LastLayerProbe:
    """Accuracy of a logistic regression on the last hidden features of `points` (default: the held-out points).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> from tiltmeter.data.public.digits import digits
    >>> _, held_out = digits()
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 10))
    >>> found = lab.measure(LastLayerProbe(), model, held_out)
    >>> float(found["probe_accuracy"]) > 0.5 > float(found["probe_accuracy_null"])
    True

    Use points on which a shortcut is uninformative, such as `dominoes(..., agreement=0)`. The features are divided by
    their root mean square norm, so that the penalty 1/`C` has the same meaning at any scale. A regression is fitted on
    a share `fit` of the points and evaluated on the rest. The null value is the share of the most frequent label among
    the rest.

    What it does not mean: a low number means that the features *no longer contain* the label in linear form, but a high
    one does not mean that the model uses it. Random features of an untrained network often have a high accuracy:
    compare with step 0. A fall late in training may be due to weight decay and not to a simplicity bias: compare with a
    run without.

    Args:
        points: Points of the regression; None: the held-out points.
        C: Inverse of its penalty.
        fit: Share of the points on which it is fitted; the rest evaluates it.
        layer: Name of the layer whose input is used; None: the last Linear layer.
        seed: Seed of that division.
        most_steps: Most steps of the fit.
    """

    points: GroupedData | None = None
    C: float = 1000.0
    fit: float = 0.75
    layer: str | None = None
    seed: int = 0
    most_steps: int = 2000
    title: ClassVar[str] = "How well a linear probe predicts a label from the last hidden features"
    takes: ClassVar[str] = "Any model with a Linear layer (or a named one); points with labels of two classes or more"
    exact: ClassVar[str] = "Up to the convergence of the regression and the sampling error of the evaluated points"
    absent: ClassVar[str] = "No easy cue in the data: the probe accuracy rises during training"

    def __post_init__(self) -> None:
        if not self.C > 0 or not 0 < self.fit < 1:
            raise ValueError(
                f"`C` should be positive and `fit` a share between 0 and 1. Found C = {self.C}, fit = {self.fit}."
            )

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        from sklearn.linear_model import LogisticRegression

        seen = snapshot.model
        data = snapshot.data if self.points is None else self.points
        features = layer_features(seen, data.tensors()[0], self.layer)
        if not np.isfinite(features).all():
            raise ValueError("A probe needs finite features. Found NaN or inf: the training may have diverged.")
        size = np.sqrt((features**2).sum(1).mean())
        features = features / size if size > 0 else features
        order = np.random.default_rng(self.seed).permutation(len(data))
        cut = round(self.fit * len(data))
        first, rest = order[:cut], order[cut:]
        if len(np.unique(data.y[first])) < 2 or not len(rest):
            raise ValueError(
                "A probe needs points of two labels to fit, and some to evaluate. Found "
                f"{len(np.unique(data.y[first]))} labels among {len(first)} points, {len(rest)} left."
            )
        regression = LogisticRegression(C=self.C, max_iter=self.most_steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged: the accuracy is that reached within the allowed steps
            regression.fit(features[first], data.y[first])
        right = regression.predict(features[rest]) == data.y[rest]
        accuracy = float(right.mean())
        middle = (right.sum() + 2.0) / (len(rest) + 4.0)
        frequent = np.unique(data.y[rest], return_counts=True)[1].max() / len(rest)
        return {
            name: snapshot.reading(name, np.asarray(float(value)), {}, long_name=meaning, better=better, **attrs)
            for name, value, meaning, better, attrs in (
                ("probe_accuracy", accuracy, "accuracy of a linear probe of the last features", "higher", {}),
                (
                    "probe_accuracy_se",
                    np.sqrt(middle * (1.0 - middle) / (len(rest) + 4.0)),
                    "its standard error",
                    "neither",
                    {},
                ),
                ("probe_accuracy_null", frequent, "share of the most frequent label", "neither", {}),
                (
                    "probe_scale",
                    np.sqrt((regression.coef_**2).mean()),
                    "root mean square coefficient of the probe",
                    "neither",
                    {"null": "value at initialisation"},
                ),
            )
        }

    def passes(self, snapshot: Snapshot) -> float:
        return 1.0 if self.points is None else len(self.points) / len(snapshot.data)
