"""Clusters: groups of points that have no table, from the features of some layers, within each label.

Features are projected to their principal components, and the points of every label are divided by k-means, into few and
into more parts. A point belongs to the nearest centre of its label by its features alone: assigned by its losses, it
would take part in choosing the group that judges it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.data.principal_components import principal_components
from tiltmeter.discover.rules import Candidates, Columns, InCluster, cluster_column, distinct
from tiltmeter.record.labelled import JSON

#: Into how many clusters the points of a label are divided.
PARTS = (3, 6, 12)
#: Principal components that are kept.
COMPONENTS = 16
#: A cluster of a label has on average at least this many points that search.
FEWEST_IN_CLUSTER = 10
#: Examples that are shown of a group.
SHOWN = 9


@dataclass(frozen=True, eq=False)
class Layer:
    """How the features of one layer become clusters: a projection, and the centres for every label and number of parts.

    `centres` has shape (clusters, components) for every (label, parts).
    """

    mean: np.ndarray
    directions: np.ndarray
    centres: Mapping[tuple[str, int], np.ndarray]

    def projected(self, features: Any) -> np.ndarray:
        """The features of some points as principal components."""
        rows = _rows(features)
        if rows.shape[1] != len(self.mean):
            raise ValueError(
                f"`features` should have {len(self.mean)} numbers for every point, as where the groups were found. "
                f"Found {rows.shape[1]}."
            )
        return np.asarray((rows - self.mean) @ self.directions.T)

    def distances(self, projected: np.ndarray, label: str, parts: int) -> np.ndarray:
        """Squared distances of points from the centres of one label: (points, clusters)."""
        centres = self.centres[label, parts]
        squares = (projected**2).sum(1)[:, None] + (centres**2).sum(1)[None]
        return np.asarray(squares - 2.0 * projected @ centres.T)

    def columns(self, name: str, features: Any, labels: np.ndarray) -> dict[str, np.ndarray]:
        """The cluster of every point as words, one column for each number of parts."""
        projected = self.projected(features)
        words = {parts: np.full(len(projected), None, dtype=object) for _, parts in self.centres}
        for label, parts in self.centres:
            chosen = np.flatnonzero(labels == label)
            nearest = self.distances(projected[chosen], label, parts).argmin(1)
            clusters = [InCluster(name, label, number + 1, parts).value for number in range(parts)]
            words[parts][chosen] = np.array(clusters, dtype=object)[nearest]
        return {cluster_column(name, parts): values for parts, values in words.items()}

    def to_json(self) -> dict[str, JSON]:
        centres: list[JSON] = [[label, parts, values.tolist()] for (label, parts), values in self.centres.items()]
        return {"mean": self.mean.tolist(), "directions": self.directions.tolist(), "centres": centres}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Layer:
        centres = {(str(label), int(parts)): np.array(values) for label, parts, values in value["centres"]}
        return cls(np.array(value["mean"]), np.array(value["directions"]), centres)


def fitted_layers(features: Mapping[str, Any], labels: np.ndarray, searched: np.ndarray, seed: int) -> dict[str, Layer]:
    """Projections and centres from the points that search."""
    return {str(name): _fitted(_rows(values)[searched], labels[searched], seed) for name, values in features.items()}


def _fitted(rows: np.ndarray, labels: np.ndarray, seed: int) -> Layer:
    from sklearn.cluster import KMeans

    components = principal_components(rows)
    directions = components.directions[:COMPONENTS]
    projected = (rows - components.mean) @ directions.T
    centres: dict[tuple[str, int], np.ndarray] = {}
    for label in np.unique(labels).tolist():
        points = projected[labels == label]
        for parts in PARTS:
            if len(points) >= FEWEST_IN_CLUSTER * parts:
                centres[label, parts] = KMeans(parts, n_init=1, random_state=seed).fit(points).cluster_centers_
    if not centres:
        raise ValueError(
            f"`features` should have at least {FEWEST_IN_CLUSTER * PARTS[0]} searched points of a label. Found fewer."
        )
    return Layer(components.mean, directions, centres)


def layer_columns(
    layers: Mapping[str, Layer], features: Mapping[str, Any], labels: np.ndarray
) -> dict[str, np.ndarray]:
    """The clusters of all layers as columns of words."""
    columns: dict[str, np.ndarray] = {}
    for name, layer in layers.items():
        if name not in features:
            raise KeyError(f"`features`: no layer {name!r}. There are: {', '.join(map(repr, features)) or 'none'}.")
        columns |= layer.columns(name, features[name], labels)
    return columns


def cluster_candidates(layers: Mapping[str, Layer], columns: Columns, rare: float) -> Candidates:
    """One condition for each cluster."""
    conditions = [
        InCluster(name, label, number + 1, parts)
        for name, layer in layers.items()
        for label, parts in layer.centres
        for number in range(parts)
    ]
    return distinct(conditions, columns, rare)


def nearest_points(layer: Layer, cluster: InCluster, features: Any, labels: np.ndarray) -> tuple[int, ...]:
    """The points of the label that lie nearest to the centre of a cluster, as examples."""
    chosen = np.flatnonzero(labels == cluster.label)
    distances = layer.distances(layer.projected(_rows(features)[chosen]), cluster.label, cluster.of)
    order = np.argsort(distances[:, cluster.number - 1], kind="stable")
    members = chosen[order[distances[order].argmin(1) == cluster.number - 1]]
    return tuple(members[:SHOWN].tolist())


def checked_features(features: object, points: int) -> dict[str, np.ndarray]:
    """The features of every layer as rows of numbers, one for each point."""
    if not isinstance(features, Mapping) or not features:
        raise TypeError(
            '`features` should be a dict of arrays, as {"first layer": array}. Found '
            f"{type(features).__name__ if not isinstance(features, Mapping) else 'an empty dict'}."
        )
    checked = {str(name): _rows(values) for name, values in features.items()}
    for name, rows in checked.items():
        if len(rows) != points:
            raise ValueError(
                f"`features` should have one row for every held-out point of the run, {points:,}. Found {len(rows):,} "
                f"in {name!r}."
            )
        if not np.isfinite(rows).all():
            raise ValueError(f"`features` should be finite numbers. Found others in {name!r}.")
    return checked


def _rows(values: Any) -> np.ndarray:
    array = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
    if array.ndim < 2 or array.dtype.kind not in "fiub":
        raise TypeError(
            "`features` should be numbers of shape (points, ...), at least two dimensions. Found shape "
            f"{array.shape} of {array.dtype}."
        )
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


def words_of_labels(labels: np.ndarray) -> np.ndarray:
    """Labels as words: of two, positive and negative; whole numbers without a point."""
    values = np.asarray(labels)
    if values.dtype == bool:
        return np.where(values, "positive", "negative").astype(object)
    words = np.empty(len(values), dtype=object)
    words[:] = [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()]
    return words


def contact_sheet(images: Any, rows: Sequence[Sequence[int]]) -> bytes:
    """A PNG file with the images at these places, one row of the sheet for each list.

    Images have shape (points, height, width), with 1 or 3 channels first or last. Numbers that are not bytes are scaled
    so that the smallest is black and the largest white.
    """
    array = images.detach().cpu().numpy() if hasattr(images, "detach") else np.asarray(images)
    if array.ndim == 3:
        array = array[..., None]
    elif array.ndim == 4 and array.shape[1] in (1, 3) and array.shape[-1] not in (1, 3):
        array = np.moveaxis(array, 1, -1)
    if array.ndim != 4 or array.shape[-1] not in (1, 3):
        raise ValueError(
            f"`images` should have shape (points, height, width) and 1 or 3 channels. Found {array.shape}."
        )
    chosen = array[[place for row in rows for place in row]]
    if chosen.dtype != np.uint8:
        low, high = float(array.min()), float(array.max())
        chosen = ((chosen - low) * (255.0 / ((high - low) or 1.0))).round().astype(np.uint8)
    height, width, channels = chosen.shape[1:]
    longest = max(len(row) for row in rows)
    sheet = np.full((len(rows) * (height + 2), longest * (width + 2), channels), 255, dtype=np.uint8)
    pictures = iter(chosen)
    for number, row in enumerate(rows):
        for place in range(len(row)):
            top, left = number * (height + 2), place * (width + 2)
            sheet[top : top + height, left : left + width] = next(pictures)
    return _png(sheet)


def _png(sheet: np.ndarray) -> bytes:
    """The file format's signature, and its three parts: size and kind, compressed rows, end."""
    height, width, channels = sheet.shape

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in sheet)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
