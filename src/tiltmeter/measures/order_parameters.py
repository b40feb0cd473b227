"""Order parameters of a trained network: what its scores on the held-out points of a group amount to.

With scores s and labels y (-1 and +1, or the numbers of a regression), M = E[s], R = E[s y] and Q = E[s^2] over the
points of a group. The half squared error of the group is (Q - 2 R + E[y^2]) / 2 exactly, so a gap of it is the gap of
Q by two minus the gap of R: *overshoot* and *alignment* apart. R / sqrt(Q E[y^2]) is the alignment, a cosine.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from tiltmeter.measures.snapshot import Snapshot, group_mean

#: What the curves mean for a network; the theory of mixtures has the same letters for the same averages.
MEANINGS = {
    "M": "mean score",
    "R": "mean of score times label",
    "Q": "mean squared score",
    "label_alignment": "cosine between scores and labels",
}


def order_parameters(snapshot: Snapshot) -> dict[str, xr.DataArray]:
    """M, R, Q and alignment of every group, of a model with one score for each point; nothing for several scores.

    >>> from tiltmeter.measures.from_scores import snapshot_of_scores, table_task
    >>> from tiltmeter.data.grouped import GroupedData
    >>> from tiltmeter.losses import Square
    >>> data = GroupedData(np.zeros((60, 1)), [-1.0, 1.0] * 30, ["a", "a", "b"] * 20)
    >>> task = table_task(data, 1, Square(), False)
    >>> found = order_parameters(snapshot_of_scores(data, task, Square(), np.tile([-2.0, 2.0], 30), None, 0, {}))
    >>> {name: curve.values.tolist() for name, curve in found.items()}
    {'M': [0.0, 0.0], 'R': [2.0, 2.0], 'Q': [4.0, 4.0], 'label_alignment': [1.0, 1.0]}
    """
    task = snapshot.task
    if task.binary and task.outputs == 1 and snapshot.margin is not None:
        # The margin is the score from its threshold, with the sign of the label. Scores of a squared loss and
        # probabilities are measured in halves of the distance between the labels.
        low, high = task.labels
        y = np.where(snapshot.data.y == high, 1.0, -1.0)
        half = {"linear": (high - low) / 2.0, "probability": 0.5}.get(task.link, 1.0)
        exact = snapshot.margin * y / half
    elif not task.decides and snapshot.score is not None and snapshot.score.ndim == 1:
        exact, y = snapshot.score.astype(float), snapshot.data.y.astype(float)
    else:
        return {}
    means = {"M": exact, "R": exact * y, "Q": exact**2, "y2": y**2}
    found = {name: group_mean(values, snapshot.data)[0] for name, values in means.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = found["R"] / np.sqrt(found["Q"] * found.pop("y2"))
    found["label_alignment"] = np.clip(cosine, -1.0, 1.0)
    better = {"label_alignment": "higher"}
    return {
        name: snapshot.by_group(name, values, long_name=MEANINGS[name], better=better.get(name, "neither"))
        for name, values in found.items()
    }
