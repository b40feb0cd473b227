"""Spectrum: how much of each group's task lies along the directions that a kernel learns fast; this tells why it
leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

#: With fewer rows than this, computing all eigenvectors is cheaper than computing the first few by Lanczos.
FULL_ROWS = 1500


def spectrum(
    kernel: np.ndarray,
    y: np.ndarray,
    groups: Sequence[Any] | np.ndarray,
    *,
    initial: np.ndarray | None = None,
    lr: float | None = None,
    modes: int | None = None,
    centred: bool = True,
) -> xr.Dataset:
    r"""Eigenvalues of a kernel and the share of each group's task along them, largest eigenvalue first.

    >>> found = spectrum(np.diag([3.0, 3.0, 1.0, 1.0]), np.array([1, -1, 1, -1]), ["a", "a", "b", "b"], lr=0.1)
    >>> found.eigenvalue.values, found.cumulative_alignment.sel(mode=2).values
    (array([3., 3., 1., 1.]), array([1., 0.]))

    In the linear dynamics the residual r = y - f along eigenvector v_i decays as exp(-lr eigenvalue_i t / n). So a
    group whose residual lies along the first eigenvectors is learned first. With r_g the residual of the group's
    points, zero at all other points,

        alignment(g, i) = (v_i . r_g)^2 / (r_g . r_g),

    `cumulative_alignment` is its sum over the modes so far (1 at the end, if all modes are included), and `rate(i)` =
    lr eigenvalue_i / n per step if `lr` is given. `centred` first subtracts the group's mean from its residual, so that
    the rest is the task without the base rate. `kernel` is (n, n), or (n C, n C) with `y` of shape (n, C); `initial`
    are the initial scores. `modes` limits the number of modes; they are then computed by Lanczos if that is cheaper.

    What it does not mean: it does not say how well a group is learned in the end, or what happens once the kernel
    itself changes.
    """
    residual, labels, names, codes = _residuals(kernel, y, groups, initial)
    outputs = residual.shape[1]
    vectors = np.zeros((len(names), *residual.shape))
    for g, name in enumerate(names):
        members = codes == g
        part = residual[members]
        if centred:
            if np.ptp(labels[members], axis=0).max() == 0:
                raise ValueError(
                    f"Labels should vary within every group. Found y = {y[members][0]} alone in {str(name)!r}."
                )
            part = part - part.mean(0)
        if not np.any(part):
            raise ValueError(f"A group should have something left to learn. Found residuals of zero in {str(name)!r}.")
        vectors[g, members] = part
    flat = vectors.reshape(len(names), -1)
    values, directions = _leading(kernel, modes)
    share = (flat @ directions) ** 2 / (flat**2).sum(1, keepdims=True)
    found = xr.Dataset(
        {
            "eigenvalue": ("mode", values, {"long_name": "eigenvalue of the kernel"}),
            "alignment": (("group", "mode"), share, {"long_name": "share of the group's task along the mode"}),
            "cumulative_alignment": (
                ("group", "mode"),
                np.cumsum(share, axis=1),
                {"long_name": "share of the group's task in the modes so far"},
            ),
        },
        coords={"mode": np.arange(1, len(values) + 1), "group": names},
    )
    if lr is not None:
        rate = lr * values / (len(kernel) // outputs)
        found["rate"] = ("mode", rate, {"long_name": "decay of the residual along the mode per step"})
    return found


def _residuals(
    kernel: np.ndarray, y: np.ndarray, groups: Sequence[Any] | np.ndarray, initial: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """y - initial and y (points, outputs), the names of the groups, and the group number of each point."""
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1]:
        raise ValueError(f"`kernel` should be square. Found shape {kernel.shape}.")
    if not np.isfinite(kernel).all():
        row = int((~np.isfinite(kernel)).any(1).argmax())
        raise ValueError(f"`kernel` should be finite. Found {kernel[row][~np.isfinite(kernel[row])][0]} in row {row}.")
    labels = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    if labels.size != len(kernel):
        raise ValueError(f"`y` should have one number per row of the kernel, {len(kernel)}. Found {labels.size}.")
    names, codes = np.unique(np.asarray(groups), return_inverse=True)
    if len(codes) != len(labels):
        raise ValueError(f"`groups` should have one label per point, {len(labels)}. Found {len(codes)}.")
    start = 0.0 if initial is None else np.asarray(initial, dtype=np.float64).reshape(labels.shape)
    return labels - start, labels, names, codes


def _leading(kernel: np.ndarray, modes: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, largest first, and eigenvectors in columns."""
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    rows = len(kernel)
    if modes is not None and not 1 <= modes <= rows:
        raise ValueError(f"`modes` should lie between 1 and {rows}. Found modes = {modes}.")
    largest = float(np.abs(kernel).max())
    # Row by row, so that the check needs no memory for a second kernel.
    if any(np.abs(kernel[i] - kernel[:, i]).max() > 1e-6 * largest for i in range(rows)):
        raise ValueError("`kernel` should be symmetric. Found that it is not: pass K(x, x).")
    if modes is None or rows <= FULL_ROWS or 10 * modes > rows:
        values, directions = eigh(kernel)
    else:
        # A fixed start makes the result reproducible.
        start = np.random.default_rng(0).normal(size=rows)
        values, directions = eigsh(kernel.astype(np.float64, copy=False), k=modes, which="LA", v0=start)
    order = np.argsort(values)[::-1][:modes]
    values, directions = values[order], directions[:, order]
    if values[0] <= 0 or values[-1] < -1e-5 * values[0]:
        raise ValueError(
            "`kernel` should have a positive eigenvalue and no negative one. "
            f"Found {values[-1]:.3g} to {values[0]:.3g}."
        )
    return np.maximum(values, 0.0), directions
