"""Rates: the exact shares of right, wrong and positive decisions of a linear student, from its overlaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tiltmeter.threads import in_blocks


@dataclass(frozen=True)
class Rates:
    """Each of shape (N, T, G): error, positive rate, true and false positive rate, precision."""

    error: np.ndarray
    positive_rate: np.ndarray
    tpr: np.ndarray
    fpr: np.ndarray
    ppv: np.ndarray


def rates(
    M: np.ndarray,
    R: np.ndarray,
    Q: np.ndarray,
    bias: np.ndarray,
    variance: np.ndarray,
    threshold: np.ndarray,
    threads: int | None = None,
) -> Rates:
    r"""Rates of the decision sign(score) over the whole population, without a test set.

    >>> one = np.ones((1, 1, 1))
    >>> rates(0 * one, 0.5 * one, np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.zeros((1, 1))).error.item()
    0.333333...

    In group g the score is normal with mean M_g + bias and variance D_g Q, and its correlation with the field that
    decides the label (mean `threshold` a_g, variance 1) is R_g / sqrt(Q). With Phi2 the bivariate normal distribution
    function and mu = (M_g + bias) / sqrt(D_g Q),

        positive rate = Phi(mu),  both = Phi2(mu, a_g; R_g / sqrt Q),  error = Phi(mu) + Phi(a_g) - 2 both,
        tpr = both / Phi(a_g),  fpr = (Phi(mu) - both) / Phi(-a_g),  ppv = both / Phi(mu).

    M, R have shape (N, T, G); Q, bias (N, T); variance, threshold (N, G). A rate with an empty denominator is NaN.
    """
    from tiltmeter.theory.population.compiled_rates import fill_rates

    out = Rates(*(np.empty(M.shape) for _ in range(5)))

    def work(start: int, stop: int) -> None:
        fill_rates(
            start, stop, M, R, Q, bias, variance, threshold, out.error, out.positive_rate, out.tpr, out.fpr, out.ppv
        )

    in_blocks(work, len(M), threads, least=8)
    return out
