"""Predictions: what was predicted, for whom and when, is enough for leaders, report, thresholds and gate.

>>> import numpy as np, tiltmeter as tm
>>> rng = np.random.default_rng(0)
>>> label, group = rng.integers(0, 2, 1000), np.array(["a", "b"] * 500)
>>> score = np.clip(0.5 + (label - 0.5) * np.where(group == "a", 0.8, 0.3) + 0.2 * rng.normal(size=1000), 0, 1)
>>> print(tm.leaders(tm.predictions.run(label=label, score=score, group=group), "error").headline.claim)
Group b has the higher error: 20 % against 1 %.

No model is needed, and PyTorch is not imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.predictions import scorers as scorers
    from tiltmeter.predictions.boosting import boosting as boosting
    from tiltmeter.predictions.boosting import sample_weight as sample_weight
    from tiltmeter.predictions.checkpoints import checkpoints as checkpoints
    from tiltmeter.predictions.run import run as run


__all__ = offer(__name__)  # noqa: PLE0605
