"""teacher_mixture: the two-group model of the papers, with groups labelled "+" and "-"."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import xarray as xr
from scipy.special import erfinv

from tiltmeter.record.labelled import Number, aligned, labelled
from tiltmeter.theory.problem.mixture import Mixture

Pair: TypeAlias = tuple[Number, Number]


class TeacherMixture:
    """The teacher-mixture model of Jain et al. (NeurIPS 2024) and Sarao Mannelli et al. (2022); call it as a function.

    >>> teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    Mixture of 2 groups: + (weight 0.8, variance 0.5), - (weight 0.2, variance 1.5)

    A share `rho` of the inputs belongs to group "+", the rest to "-". Group c = +1, -1 has inputs x = c v / sqrt(d) +
    sqrt(variance_c) z and labels `sign(W_c.x / sqrt(d) + label_bias_c)`. `shift` is `|v|^2 / d`, `overlap` is `W_+.W_-
    / d`, and `shift_overlap` = `(v.W_+ / d, v.W_- / d)` says how far the shift itself predicts the label, which makes
    it a shortcut.

    Args:
        rho: Share of the group "+", between 0 and 1.
        shift: Squared length of the shift between the groups, per dimension.
        variance: Variance of the inputs of "+" and of "-".
        overlap: Cosine of the two labelling rules: 1 if they are the same.
        shift_overlap: How far the shift points along the rule of "+" and of "-".
        label_bias: Added to the rule of "+" and of "-" before the sign is taken.
    """

    def __call__(
        self,
        rho: Number = 0.5,
        shift: Number = 0.0,
        variance: Pair = (1.0, 1.0),
        overlap: Number = 1.0,
        shift_overlap: Pair = (0.0, 0.0),
        label_bias: Pair = (0.0, 0.0),
    ) -> Mixture:
        rho_ = labelled(rho, "rho")
        if not ((rho_.values > 0) & (rho_.values < 1)).all():
            bad = rho_.values[~((rho_.values > 0) & (rho_.values < 1))].flat[0]
            raise ValueError(f"`rho` should lie strictly between 0 and 1. Found rho = {bad:g}.")
        v = labelled(shift, "shift")
        if not (v.values >= 0).all():
            raise ValueError(
                f"`shift` is a squared length and should not be negative. Found shift = {v.values.min():g}."
            )
        t = labelled(overlap, "overlap")
        if not (np.abs(t.values) <= 1).all():
            worst = t.values.flat[np.abs(t.values).argmax()]
            raise ValueError(f"`overlap` should lie between -1 and 1. Found overlap = {worst:g}.")
        delta = _pair(variance, "variance")
        a_plus, a_minus = _pair(shift_overlap, "shift_overlap")
        b_plus, b_minus = _pair(label_bias, "label_bias")
        gram: list[list[Number]] = [
            [v, -v, a_plus, a_minus],
            [-v, v, -a_plus, -a_minus],
            [a_plus, -a_plus, 1.0, t],
            [a_minus, -a_minus, t, 1.0],
        ]
        return Mixture(
            weight={"+": rho_, "-": 1.0 - rho_},
            variance={"+": delta[0], "-": delta[1]},
            gram=gram,
            label_bias={"+": b_plus, "-": b_minus},
        )

    def from_thresholds(
        self,
        thresholds: Pair,
        rho: Number = 0.5,
        shift: Number = 0.0,
        variance: Pair = (1.0, 1.0),
        overlap: Number = 1.0,
    ) -> Mixture:
        """The mixture whose shift overlaps give each group the threshold a_c = c A_c / sqrt(variance_c).

        >>> problem = teacher_mixture.from_thresholds((0.471, -0.188), 0.7, 4.0, variance=(0.1, 1.0), overlap=0.9)
        >>> problem.gram.sel(vector="mean +", other="teacher +").item()
        0.14894...

        One interpretation of the papers' alpha; P(y = +1 | c) is the normal distribution function at a_c.
        """
        a_plus, a_minus = _pair(thresholds, "thresholds")
        d_plus, d_minus = _pair(variance, "variance")
        # Aligned first: different labels raise an error and are never dropped silently.
        a_plus, a_minus, d_plus, d_minus = aligned((a_plus, a_minus, d_plus, d_minus), "thresholds and variances")
        overlaps = (a_plus * d_plus**0.5, -a_minus * d_minus**0.5)
        return self(rho, shift, (d_plus, d_minus), overlap, overlaps)

    def from_mean_labels(
        self,
        mean_labels: Pair,
        rho: Number = 0.5,
        shift: Number = 0.0,
        variance: Pair = (1.0, 1.0),
        overlap: Number = 1.0,
    ) -> Mixture:
        """The mixture whose shift overlaps give each group this mean label E[y | c], strictly between -1 and 1.

        >>> problem = teacher_mixture.from_mean_labels((0.471, -0.188), 0.7, 4.0, variance=(0.1, 1.0), overlap=0.9)
        >>> problem.gram.sel(vector="mean +", other="teacher +").item()
        0.1990...
        """
        means = _pair(mean_labels, "mean_labels")
        for mean in means:
            if not (np.abs(mean.values) < 1).all():
                raise ValueError(f"`mean_labels` should lie strictly between -1 and 1. Found {mean.values.flat[0]:g}.")
        a_plus, a_minus = (np.sqrt(2.0) * xr.apply_ufunc(erfinv, mean) for mean in means)
        return self.from_thresholds((a_plus, a_minus), rho, shift, variance, overlap)

    def __repr__(self) -> str:
        return "teacher_mixture"


def _pair(values: Pair, name: str) -> tuple[xr.DataArray, xr.DataArray]:
    if not isinstance(values, (tuple, list)) or len(values) != 2 or isinstance(values[0], str):
        raise TypeError(f"`{name}` should be a pair, one number for '+' and one for '-'. Found {values!r}.")
    return labelled(values[0], name), labelled(values[1], name)


teacher_mixture = TeacherMixture()
