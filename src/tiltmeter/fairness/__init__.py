"""Fairness: what a finished run says about its groups, and how to choose between runs.

>>> import tiltmeter as tm
>>> theory = tm.predict(*tm.theory.cases.three_phases())
>>> print(str(tm.fairness.stopping(theory)).splitlines()[0])
Among evaluations whose mean loss is within 10 % of the best seen:

`why`, `calibration` and the gate look at the last evaluation; `criteria` and `selections` say what the best run or
checkpoint is; `stopping` looks at all evaluations; `class_leaders` asks about classes;
`best_weights` are the group weights that a tangent
kernel recommends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter import criteria as criteria
    from tiltmeter.fairness.calibration import calibration as calibration
    from tiltmeter.fairness.why import why as why
    from tiltmeter.forecast.kernel.best_weights import best_weights as best_weights
    from tiltmeter.leaders.classes import class_leaders as class_leaders
    from tiltmeter.leaders.scorecard import selections as selections
    from tiltmeter.leaders.stopping import stopping as stopping

__all__ = offer(__name__)  # noqa: PLE0605
