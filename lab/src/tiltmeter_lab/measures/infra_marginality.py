"""infra-marginality: the error rates that follow from a group's own distribution of risk at a common threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.measures.measure import two_labels
from tiltmeter_lab.measures.shared.risk import positives, risk


@dataclass(frozen=True)
class InfraMarginality:
    """Error rates compared with those that follow from calibrated risks alone (Corbett-Davies and Goel, 2018).

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> data = tm.GroupedData([[-2.0], [1.0]] * 30 + [[-1.0], [2.0]] * 30, [0, 1] * 60, ["a"] * 60 + ["b"] * 60)
    >>> lab.measure(InfraMarginality(), torch.nn.Identity(), data, tm.Logistic())["implied_tpr"].values.round(3)
    array([0.86 , 0.766])

    Let p be the risk that the model gives a point, and let every point above one `threshold` be decided positive. If p
    is calibrated in each group, its rates follow from the distribution of p in that group, far from the threshold as
    well as near it:

        tpr = E[p, p > threshold] / E[p],   fpr = E[1 - p, p > threshold] / E[1 - p],   ppv = E[p | p > threshold].

    - `implied_tpr`, `implied_fpr`, `implied_ppv`: these rates; null value: those of all points taken as one group;
    - `unexplained_tpr`, `unexplained_fpr`, `unexplained_ppv`: observed rate minus implied rate; null value 0;
    - `marginal_outcome`: share of positives among points whose risk is within `width` of the threshold. It is similar
      in all groups if they share one threshold; null value: that of all points. NaN if a group has no such points.

    If groups differ in the implied rates but not in the other curves, they are treated equally at the margin. The gap
    in their error rates then comes from their different distributions of risk (infra-marginality), according to this
    model.

    What it does not mean: it does not mean that the risks are right or fair. A model may be calibrated in each group
    and still ignore what distinguishes its members, and labels may be biased themselves.

    Args:
        threshold: Risk above which a decision is positive.
        width: Distance from the threshold within which a point is marginal.
    """

    threshold: float = 0.5
    width: float = 0.1

    title: ClassVar[str] = "Error rates that follow from a group's distribution of risk, and the unexplained rest"
    takes: ClassVar[str] = "two labels and probabilities (logistic loss, cross-entropy, squared error)"
    exact: ClassVar[str] = "always, for the held-out points"
    absent: ClassVar[str] = "groups with one distribution of risk: implied rates are those of all points"

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise ValueError(f"`threshold` should lie between 0 and 1. Found threshold = {self.threshold}.")
        if not self.width > 0:
            raise ValueError(f"`width` should be positive. Found width = {self.width}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        positive, p = positives(snapshot), risk(snapshot)
        codes, count = snapshot.data.codes, len(snapshot.data.groups)
        chosen = p > self.threshold
        implied = np.stack([rates(p[codes == code], chosen[codes == code]) for code in range(count)], 1)
        counted = np.stack([rates(positive[codes == code], chosen[codes == code]) for code in range(count)], 1)
        pooled = rates(p, chosen)
        groups = {"group": snapshot.data.group_labels}
        found: dict[str, xr.DataArray] = {}
        for place, (name, better) in enumerate((("tpr", "higher"), ("fpr", "lower"), ("ppv", "higher"))):
            key, text = f"implied_{name}", f"{name} that the group's risks imply"
            found[key] = snapshot.reading(key, implied[place], groups, long_name=text, better=better)
            null = np.full(count, pooled[place])
            found[f"{key}_null"] = snapshot.reading(
                f"{key}_null", null, groups, long_name=f"{name} that the risks of all points imply", better=better
            )
            key, text = f"unexplained_{name}", f"{name} minus the one that the group's risks imply"
            rest = counted[place] - implied[place]
            null_words = "0: risks are calibrated on both sides of the threshold"
            found[key] = snapshot.reading(key, rest, groups, long_name=text, better="neither", null=null_words)
        near = np.abs(p - self.threshold) <= self.width
        share = np.array([_mean(positive[near & (codes == code)]) for code in range(count)])
        text = "share of positives among points near the threshold"
        for key, values in (
            ("marginal_outcome", share),
            ("marginal_outcome_null", np.full(count, _mean(positive[near]))),
        ):
            found[key] = snapshot.reading(key, values, groups, long_name=text, better="neither")
        return found

    @classmethod
    def example(cls, seed: int = 0) -> tuple[Self, nn.Module, GroupedData]:
        """Digits with two labels."""
        return cls(), *two_labels(seed)


def rates(positive: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """(tpr, fpr, ppv) of decisions; `positive` gives the probability that each point is positive (or True or False).

    >>> rates(np.array([0.9, 0.6, 0.2, 0.3]), np.array([True, True, False, False]))
    array([0.75, 0.25, 0.75])
    """
    p = positive.astype(float)
    return np.array([_share(p * chosen, p), _share((1.0 - p) * chosen, 1.0 - p), _share(p * chosen, chosen)])


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    total = float(whole.sum())
    return float(part.sum()) / total if total > 0 else np.nan


def _mean(holds: np.ndarray) -> float:
    return float(holds.mean()) if len(holds) else np.nan
