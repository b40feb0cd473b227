"""One number per seed: its mean in standard errors, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from math import copysign, inf

import numpy as np

from tiltmeter_lab.shared.over_seeds import mean_and_error


def in_errors(values: np.ndarray) -> float:
    """The mean over seeds in units of its standard error; infinite where all seeds give the same number.

    >>> in_errors(np.array([1.0, 3.0])), in_errors(np.array([0.0, 0.0])), in_errors(np.array([-1.0, -1.0]))
    (2.0, 0.0, -inf)
    """
    mean, error = mean_and_error(values)
    if error == 0.0:
        return 0.0 if mean == 0.0 else copysign(inf, mean)
    return mean / error


def told(values: Mapping[str, np.ndarray]) -> str:
    """Means and standard errors by name, as text.

    >>> told({"toy": np.array([1.0, 3.0])})
    'toy +2.000 ± 1.000.'
    """
    return "; ".join("{} {:+.3f} ± {:.3f}".format(name, *mean_and_error(one)) for name, one in values.items()) + "."
