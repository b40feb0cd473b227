"""The bivariate normal distribution function, compiled, for whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiltmeter.threads import in_blocks

BUFFER = 1 << 14  # elements of a broadcast block
WORTH_A_THREAD = 1 << 14  # elements: 1 to 2 ms of work
ROUNDING = 1e-12  # how far beyond 1 a computed correlation may lie


def bivariate_normal_cdf(
    h: ArrayLike,
    k: ArrayLike,
    r: ArrayLike,
    out: NDArray[np.float64] | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Probability that X is at most `h` and Y at most `k`, for standard normal X and Y with correlation `r`.

    >>> bivariate_normal_cdf(0.0, [-np.inf, 0.0, np.inf], 0.5)
    array([0.        , 0.33333333, 0.5       ])
    >>> bivariate_normal_cdf([[-1.0], [1.0]], 1.0, [-1.0, 0.0, 1.0])
    array([[0.        , 0.13348376, 0.15865525],
           [0.68268949, 0.70786098, 0.84134475]])

        Phi2(h, k, r) = ∫_{-∞}^h ∫_{-∞}^k exp(-(x² - 2rxy + y²) / (2 (1 - r²))) / (2π √(1 - r²)) dy dx

    The three arguments are broadcast against each other in blocks, so the full broadcast arrays are never stored. The
    result is written to `out`, if given, and does not depend on `threads` (default: all cores).

    Infinite `h` and `k` and r = ±1 give the exact limits; NaN gives NaN; `r` beyond ±1 by at most 1e-12 is treated as
    rounding. Compared with 50 digits the error is below 5e-16, and also below 5e-16 (1 + x²) Phi(x) with x the lower of
    `h` and `k`: a conditional probability Phi2 / Phi is right to 13 decimals, however rare its condition is. Phi2
    itself has 11 correct digits, however small it is, except for r within 1e-6 of -1 and h + k near 0, where it is a
    difference of nearly equal numbers.

    It does not take means or variances (standardise first) or more than two variables, does not keep labels
    (coordinates of xarray are dropped), and is not differentiable.
    """
    h, k, r = (np.asarray(x, dtype=np.float64) for x in (h, k, r))
    for extreme in (np.fmin.reduce(r, axis=None, initial=0.0), np.fmax.reduce(r, axis=None, initial=0.0)):
        if abs(extreme) > 1 + ROUNDING:
            raise ValueError(f"`r` should lie between -1 and 1. Found r = {extreme}.")
    shape = np.broadcast_shapes(h.shape, k.shape, r.shape)
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64:
        raise ValueError(f"`out` should be float64 of shape {shape}. Found {out.dtype} of shape {out.shape}.")
    if any(np.may_share_memory(out, x) for x in (h, k, r)):
        out[...] = bivariate_normal_cdf(h, k, r, threads=threads)
        return out

    from tiltmeter.population.compiled_normal import bivariate_into

    def work(start: int, stop: int) -> None:
        blocks = np.nditer(
            (h, k, r, out),
            flags=["external_loop", "buffered", "ranged", "zerosize_ok"],
            op_flags=[["readonly", "contig"]] * 3 + [["writeonly", "contig"]],  # type: ignore[arg-type]
            buffersize=BUFFER,
        )
        with blocks:
            blocks.iterrange = (start, stop)  # type: ignore[misc]
            for block in blocks:
                bivariate_into(*block)

    in_blocks(work, out.size, threads, least=WORTH_A_THREAD)
    return out
