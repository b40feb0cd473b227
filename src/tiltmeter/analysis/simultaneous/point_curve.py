"""PointCurve: one number per point and look, whose mean over a group is a value of a curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: A real-valued curve of a group with fewer points than this is not tested.
FEWEST = 20


@dataclass(frozen=True, eq=False)
class PointCurve:
    """The values of one curve before they are averaged: `values` has shape (looks, points).

    >>> decided = PointCurve("tpr", np.array([[True, False, True]]), where=np.array([True, True, False]))
    >>> decided.rate, decided.counts(np.array([0, 1, 1]), 2).tolist()
    (True, [1, 1])

    `where` says which points count (for a true-positive rate the positives; None: all). Boolean values make the curve a
    rate. Several runs on the same points have shape (seeds, looks, points); `averaged` is their mean.
    """

    name: str
    values: np.ndarray
    where: np.ndarray | None = None
    shares: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim not in (2, 3):
            raise ValueError(
                f"The points of {self.name!r} should have shape (looks, points), or (seeds, looks, points). "
                f"Found shape {self.values.shape}."
            )
        if self.where is not None and self.where.shape != self.values.shape[-1:]:
            raise ValueError(
                f"`where` should say of each of {self.values.shape[-1]} points whether it counts. "
                f"Found shape {self.where.shape}."
            )
        if not self.rate and not np.isfinite(self.values).all():
            raise ValueError(f"The points of {self.name!r} should be finite. Found values that are not.")

    @property
    def rate(self) -> bool:
        """Whether every value is a decision, or a share of several decisions."""
        return self.shares or self.values.dtype == bool

    @property
    def averaged(self) -> PointCurve:
        """The mean over seeds, point by point; for decisions, the share of seeds."""
        return PointCurve(self.name, self.values.mean(0, dtype=np.float64), self.where, self.rate)

    @property
    def looks(self) -> int:
        return int(self.values.shape[-2])

    def counts(self, codes: np.ndarray, groups: int) -> np.ndarray:
        """Points that count, in every group."""
        counted = codes if self.where is None else codes[self.where]
        return np.bincount(counted, minlength=groups)

    def judged(self, codes: np.ndarray, groups: int) -> np.ndarray:
        """Return the groups with enough points for a test: one for a rate, 20 for a real-valued curve."""
        return np.asarray(self.counts(codes, groups) >= (1 if self.rate else FEWEST))


def check_codes(curves: list[PointCurve], codes: np.ndarray, groups: int) -> None:
    """Refuse codes that do not fit the points, and curves that do not share their points."""
    if not curves:
        raise ValueError("There should be at least one curve. Found none.")
    for curve in curves:
        if curve.values.shape[-1] != len(codes):
            raise ValueError(
                f"Every point should have a group. Found {len(codes)} groups for {curve.values.shape[-1]} points of "
                f"{curve.name!r}."
            )
    if len(codes) and not (codes.min() >= 0 and codes.max() < groups):
        raise ValueError(f"Codes of groups should lie from 0 to {groups - 1}. Found {codes.min()} to {codes.max()}.")
    if len({curve.name for curve in curves}) < len(curves):
        raise ValueError(f"Curves should have different names. Found {', '.join(curve.name for curve in curves)}.")
