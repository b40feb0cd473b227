"""SeedMean: a mean over seeds, its standard error, and whether it is clearly different from zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tiltmeter.analysis.over_seeds import mean_and_error
from tiltmeter.analysis.pairs import ROUNDING, SURE
from tiltmeter.notebook_text import NotebookText


@dataclass(frozen=True)
class SeedMean(NotebookText):
    """A mean over seeds and its standard error: NaN with one run, 0 for exact theory.

    Below `resolution` it may be an error of the computation, and has no sign.

    >>> SeedMean.over([1.0, 3.0])
    SeedMean(value=2.0, error=1.0)
    >>> print(SeedMean.over([1.0, 3.0]))
    2.0000 ± 1.0000
    """

    value: float
    error: float = float("nan")
    resolution: float = field(default=ROUNDING, repr=False, compare=False)

    @classmethod
    def over(cls, values: Any, exact: bool = False) -> SeedMean:
        """Of one number per seed."""
        mean, error = mean_and_error(values)
        return cls(mean, 0.0 if exact else error)

    @property
    def sign(self) -> int:
        """+1 or -1 where it lies more than two standard errors from zero, else 0; by its value if no error is known."""
        margin = SURE * self.error if np.isfinite(self.error) else 0.0
        if not np.isfinite(self.value) or abs(self.value) <= max(margin, self.resolution):
            return 0
        return 1 if self.value > 0 else -1

    def __format__(self, how: str) -> str:
        shown = f"{self.value:{how or '.4f'}}"
        return f"{shown} ± {self.error:.4f}" if np.isfinite(self.error) and self.error > 0 else shown

    def __str__(self) -> str:
        return f"{self:.4f}"

    def to_json(self) -> dict[str, float | None]:
        """Plain JSON; what is not known is null."""
        return {
            "value": self.value if np.isfinite(self.value) else None,
            "error": self.error if np.isfinite(self.error) else None,
        }
