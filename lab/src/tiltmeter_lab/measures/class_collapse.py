"""class-collapse: how much of the features' scatter within a class is left, and how much of it tells the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from tiltmeter.measures.default_curves import MOST
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.shared.layer_features import layer_features


@dataclass(frozen=True)
class ClassCollapse:
    """`class_scatter` (class): variance of the last features within a class over that of all points. `subclass_scatter`
    (class): the part of a class's variance that lies between its groups.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> x = [[y, 0.1 * g] for y in (0.0, 1.0) for g in (-1.0, 1.0)] * 30
    >>> data = tm.GroupedData(x, [0, 0, 1, 1] * 30, ["a", "b"] * 60)
    >>> found = lab.measure(ClassCollapse(), torch.nn.Linear(2, 2), data)
    >>> found["class_scatter"].values.round(3), found["subclass_scatter"].values
    (array([0.038, 0.038]), array([1., 1.]))

    Variances are sums over features. As training goes on, features of a class may collapse to one point (Papyan et
    al., 2020), and subclasses (here: the groups within a class) are no longer told apart (Chen et al., 2022). The null
    value of `class_scatter` is 1, that of `subclass_scatter` its value for groups dealt at random within the class.

    What it does not mean: a class that keeps its scatter is not learned worse, and a subclass that can be told apart
    is not treated differently.

    Args:
        layer: Name of the layer whose input is used; None: the last Linear layer.
        seed: Seed of the random groups of the null value.
    """

    layer: str | None = None
    seed: int = 0

    title: ClassVar[str] = "Scatter of features within classes, and the part of it between groups"
    takes: ClassVar[str] = "classes, and a model with a Linear layer (or a named one)"
    exact: ClassVar[str] = "always, for the held-out points"
    absent: ClassVar[str] = "groups alike within every class: the scatter between them is that of random groups"

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data, labels = snapshot.data, np.asarray(snapshot.task.labels, dtype=float)
        if not 2 <= len(labels) <= MOST:
            raise ValueError(f"ClassCollapse needs 2 to {MOST} classes. Found {len(labels)}.")
        features = layer_features(snapshot.model, snapshot.model.x, self.layer)
        kinds = np.searchsorted(labels, data.y.astype(float))
        rng, total = np.random.default_rng(self.seed), features.var(0).sum()
        values = np.full((3, len(labels)), np.nan)
        for kind in range(len(labels)):
            own, codes = features[kinds == kind], data.codes[kinds == kind]
            if len(own) and total > 0:
                scatter = own.var(0).sum()
                values[0, kind] = scatter / total
                if scatter > 0:
                    values[1:, kind] = [between(own, given) / scatter for given in (codes, rng.permutation(codes))]
        coords = {"class": labels}
        reading, words = snapshot.reading, {"better": "neither"}
        part = "part of a class's variance between its groups"
        return {
            "class_scatter": reading(
                "class_scatter",
                values[0],
                coords,
                long_name="variance of features within a class, over that of all points",
                null="1: a class scatters as all points do",
                **words,
            ),
            "subclass_scatter": reading("subclass_scatter", values[1], coords, long_name=part, **words),
            "subclass_scatter_null": reading(
                "subclass_scatter_null", values[2], coords, long_name=f"{part}, by chance", **words
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One for the features."""
        return 1.0


def between(rows: np.ndarray, codes: np.ndarray) -> float:
    """Variance of the means of groups, each counted with its points.

    >>> between(np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([0, 0, 1, 1]))
    1.0
    """
    mean = rows.mean(0)
    return float(sum((codes == c).mean() * ((rows[codes == c].mean(0) - mean) ** 2).sum() for c in np.unique(codes)))
