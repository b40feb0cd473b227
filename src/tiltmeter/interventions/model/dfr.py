"""DFR: the last layer fitted anew on points balanced over groups."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiltmeter.interventions.kinds import ModelIntervention
from tiltmeter.interventions.shared.last_features import last_features


@dataclass(frozen=True)
class DFR(ModelIntervention):
    """The mean of `fits` logistic regressions on the last features, deep feature reweighting, Kirichenko et al. (2023).

    >>> import numpy as np, torch, tiltmeter as tm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 4)).astype("float32")
    >>> data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.where(x[:, 1] > 0.8, "rare", "common"))
    >>> fitted = DFR().deliver(torch.nn.Linear(4, 1), data)
    >>> bool(((fitted(torch.tensor(x))[:, 0] > 0).numpy() == data.y).mean() > 0.95)
    True

    Each fit sees as many points of every group and label as the smallest such cell has. Features are standardised, and
    the scaling is folded back into the layer. Curves of a training with it show what the features could do if training
    stopped there.

    Its points should be held out: training points are fitted too well to show which features hold elsewhere.

    Args:
        fits: Logistic regressions that are averaged.
        strength: Inverse of the ridge, scikit-learn's C.
        seed: Seed of the random draws.
    """

    cannot = "repair features that were never learned"
    logits = True

    fits: int = 10
    strength: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.fits, bool) or self.fits != int(self.fits) or self.fits < 1:
            raise ValueError(f"`fits` should be a positive whole number. Found fits = {self.fits!r}.")
        if isinstance(self.strength, bool) or not 0.0 < self.strength < np.inf:
            raise ValueError(f"`strength` should be a positive number. Found strength = {self.strength!r}.")

    def deliver(self, model: Any, data: Any) -> Any:
        import torch

        delivered = copy.deepcopy(model)
        layer, features = last_features(delivered, data, "DFR")
        rows, offsets = _mean_fit(features, data, layer.out_features, layer.bias is not None, self)
        with torch.no_grad():
            layer.weight.copy_(torch.as_tensor(rows))
            if layer.bias is not None:
                layer.bias.copy_(torch.as_tensor(offsets))
        return delivered


def _mean_fit(features: np.ndarray, data: Any, outputs: int, bias: bool, law: DFR) -> tuple[np.ndarray, np.ndarray]:
    """Rows and offsets of the layer: the mean over balanced subsets."""
    from sklearn.linear_model import LogisticRegression

    labels, wanted = np.unique(data.y, return_inverse=True)
    expected = max(outputs, 2)
    if len(labels) != expected:
        raise ValueError(f"DFR needs points of all {expected} labels that the model tells apart. Found {len(labels)}.")
    cells = np.unique(data.codes * len(labels) + wanted, return_inverse=True)[1]
    least = int(np.bincount(cells).min())
    middle = features.mean(0) if bias else np.zeros(features.shape[1])
    width = features.std(0)
    width = np.where(width > 0.0, width, 1.0)
    scaled = (features - middle) / width
    rng = np.random.default_rng(law.seed)
    rows, offsets = np.zeros((outputs, features.shape[1])), np.zeros(outputs)
    for _ in range(law.fits):
        order = rng.permutation(len(cells))
        ranks = _rank_in_cell(cells[order])
        chosen = order[ranks < least]
        fit = LogisticRegression(C=law.strength, fit_intercept=bias, max_iter=1000)
        fit.fit(scaled[chosen], wanted[chosen])
        found, offset = fit.coef_, np.broadcast_to(fit.intercept_, len(fit.coef_))
        if outputs == 2:  # scikit-learn gives the difference of the two
            found, offset = np.concatenate([-found, found]) / 2.0, np.concatenate([-offset, offset]) / 2.0
        rows += found / law.fits
        offsets += offset / law.fits
    rows = rows / width
    return rows, offsets - rows @ middle


def _rank_in_cell(cells: np.ndarray) -> np.ndarray:
    """How many entries of the same cell stand before each."""
    order = np.argsort(cells, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cells))])[:-1]
    ranks = np.empty(len(cells), dtype=np.int64)
    ranks[order] = np.arange(len(cells)) - starts[cells[order]]
    return ranks
