"""guessing-bias: whether a network prefers one class before it has learned anything (Francazi et al., 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot


@dataclass(frozen=True)
class GuessingBias:
    """Share of points that get each label, and how far the most frequent one is above an even share.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> model = torch.nn.Linear(2, 1)
    >>> model.weight.data, model.bias.data = torch.zeros(1, 2), torch.ones(1)  # always positive
    >>> data = tm.GroupedData(torch.eye(2).repeat(30, 1), [0, 1] * 30, ["all"] * 60)
    >>> found = lab.measure(GuessingBias(), model, data)
    >>> found["predicted_share"].values.tolist(), float(found["guessing_bias"])
    ([0.0, 1.0], 1.0)

    `predicted_share` has one number for each label; its null value is one over the number of labels. With n labels,
    `guessing_bias` is (largest share - 1/n) / (1 - 1/n): 0 if all labels are chosen equally often, 1 if only one is.
    Networks with ReLU prefer some class at random before training, because their features have a positive mean; the
    deeper, the more. Networks with odd activations (tanh) and no biases do not. Look at step 0 for the *initial* bias.

    What it does not mean: after training, an uneven share may simply be that of the labels. One network says little:
    the bias is that of the distribution over initial weights, so average over seeds. Few points also make the largest
    share exceed an even one, by about sqrt(n / points).
    """

    title: ClassVar[str] = "How unevenly the labels are chosen, above all before training"
    takes: ClassVar[str] = "a model that decides between labels"
    exact: ClassVar[str] = "for the points looked at"
    absent: ClassVar[str] = "odd activations without biases on symmetric inputs: on average all labels equally often"
    weighs: ClassVar[bool] = True

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if snapshot.decision is None:
            raise ValueError("GuessingBias needs decisions. Found a model that decides nothing.")
        labels = np.asarray(snapshot.data.labels)
        if len(labels) < 2:
            raise ValueError(f"GuessingBias needs at least two labels. Found {len(labels)}.")
        mass = np.ones(len(snapshot.data)) if snapshot.data.weights is None else np.asarray(snapshot.data.weights)
        decision = np.asarray(snapshot.decision)
        shares = np.array([mass[decision == label].sum() for label in labels]) / mass.sum()
        even = 1.0 / len(labels)
        coords = {"label": labels}
        return {
            "predicted_share": snapshot.reading(
                "predicted_share", shares, coords, long_name="share of points that get this label", better="neither"
            ),
            "predicted_share_null": snapshot.reading(
                "predicted_share_null",
                np.full(len(labels), even),
                coords,
                long_name="an even share",
                better="neither",
            ),
            "guessing_bias": snapshot.reading(
                "guessing_bias",
                np.asarray((shares.max() - even) / (1.0 - even)),
                {},
                long_name="how far the most frequent choice is above an even share",
                better="neither",
                null="0: all labels equally often",
            ),
        }
