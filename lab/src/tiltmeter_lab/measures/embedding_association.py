"""embedding-association: whether one group lies closer to one label than the other group does, in the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.measure import two_labels
from tiltmeter_lab.measures.shared.layer_features import layer_features

Sets = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class EmbeddingAssociation:
    """`association_effect`: the effect size of WEAT (Caliskan et al., 2017), and `association_p` of its permutation
    test.

    >>> import tiltmeter as tm
    >>> import tiltmeter_lab as lab
    >>> sorted(lab.measure(*EmbeddingAssociation.example(0)))
    ['association_effect', 'association_effect_null', 'association_p']

    The association of a vector w is its mean cosine with the vectors of A minus that with those of B. The effect is the
    mean association of X minus that of Y, over the standard deviation of all of them: between -2 and 2.

    `sets` = (X, Y, A, B) are numbers of tokens, whose vectors are rows of the model's first Embedding. Without them X
    and Y are the points of the first two groups and A and B those of the larger and the smaller label, as features of
    the last layer, at most `points` of each, evenly chosen.

    The null value is the mean effect of `permutations` random splits of X and Y, and `association_p` the share of them
    with an effect at least as large in size.

    What it does not mean: an association in the vectors is *not* a difference in decisions. Where labels are more
    frequent in one group, points are associated as they should be.

    Args:
        sets: Numbers of tokens (X, Y, A, B); None: the points of two groups and of two labels.
        points: Most points of each set, evenly chosen.
        permutations: Random splits for the null value and the p value.
        layer: Name of the layer whose input is used; None: the last Linear layer.
        seed: Seed of the permutations.
    """

    sets: Sets | None = None
    points: int = 100
    permutations: int = 199
    layer: str | None = None
    seed: int = 0

    title: ClassVar[str] = "Association of groups with labels in the features or embeddings (WEAT)"
    takes: ClassVar[str] = "two labels and two groups, or numbers of tokens and a model with an Embedding"
    exact: ClassVar[str] = "the effect always; its null value and p by permutation"
    absent: ClassVar[str] = "random groups: an effect near 0"

    def __post_init__(self) -> None:
        if self.sets is not None and (len(self.sets) != 4 or not all(self.sets)):
            raise ValueError(f"`sets` should be four sets of token numbers, none empty. Found {self.sets!r}.")
        for name in ("points", "permutations"):
            if getattr(self, name) < 2:
                raise ValueError(f"`{name}` should be at least 2. Found {name} = {getattr(self, name)}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        x, y, a, b = self._vectors(snapshot)
        each = np.concatenate([x, y]) @ (a.mean(0) - b.mean(0))
        rng, first = np.random.default_rng(self.seed), len(x)
        random = np.array([effect(rng.permutation(each), first) for _ in range(self.permutations)])
        value = effect(each, first)
        p = (1 + np.sum(np.abs(random) >= abs(value))) / (1 + len(random)) if np.isfinite(value) else np.nan
        words = {"better": "neither"}
        meaning = "association of the first group with the larger label, against the second group"
        reading = snapshot.reading
        return {
            "association_effect": reading("association_effect", np.asarray(value), {}, long_name=meaning, **words),
            "association_effect_null": reading(
                "association_effect_null", np.asarray(random.mean()), {}, long_name=f"{meaning}, by chance", **words
            ),
            "association_p": reading(
                "association_p",
                np.asarray(p),
                {},
                long_name="share of random splits with an effect as large",
                null="uniform between 0 and 1",
                **words,
            ),
        }

    def _vectors(self, snapshot: Snapshot) -> tuple[np.ndarray, ...]:
        """The four sets of vectors, each of length one."""
        seen, data = snapshot.model, snapshot.data
        if self.sets is not None:
            tables = [module for module in seen.module.modules() if isinstance(module, nn.Embedding)]
            if not tables:
                raise ValueError("`sets` needs a model with an Embedding. Found none.")
            rows = tables[0].weight.detach().double().cpu().numpy()
            if max(map(max, self.sets)) >= len(rows) or min(map(min, self.sets)) < 0:
                raise ValueError(f"`sets` should be numbers of tokens below {len(rows)}. Found {self.sets!r}.")
            return tuple(_unit(rows[list(chosen)]) for chosen in self.sets)
        if len(data.groups) < 2 or not snapshot.task.binary:
            raise ValueError("EmbeddingAssociation needs two groups and two labels, or `sets` of tokens.")
        features = layer_features(seen, seen.x, self.layer)
        positive = data.y == snapshot.task.positive
        members = [np.flatnonzero(mask) for mask in (data.codes == 0, data.codes == 1, positive, ~positive)]
        if not all(map(len, members)):
            raise ValueError("EmbeddingAssociation needs points of both groups and of both labels.")
        some = [own[np.linspace(0, len(own) - 1, min(self.points, len(own))).round().astype(int)] for own in members]
        return tuple(_unit(features[places]) for places in some)

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One for the features; none for an Embedding."""
        return 1.0 if self.sets is None else 0.0

    @classmethod
    def example(cls, seed: int = 0) -> tuple[Self, nn.Module, GroupedData]:
        """Digits with two labels."""
        return cls(), *two_labels(seed)


def effect(each: np.ndarray, first: int) -> float:
    """Mean of the first so many associations minus that of the others, over the standard deviation of all.

    >>> effect(np.array([1.0, 1.0, -1.0, -1.0]), 2)
    1.73...
    """
    spread = each.std(ddof=1)
    return float((each[:first].mean() - each[first:].mean()) / spread) if spread > 0 else np.nan


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))
