"""Theory: exact dynamics of bias for linear students on a `Mixture`, without simulation.

>>> from tiltmeter import predict
>>> from tiltmeter.problem import cases
>>> problem, sgd, times = cases.centred_crossing()
>>> predict(problem, sgd, times)["loss"].isel(time=-1).values.round(3)
array([0.234, 0.442])

Three routes give the same curves. `predict` sums exponentials (`modes`), `closed_form` is the published two-group
formula, and `integrate` solves the equations of motion numerically, which also covers schedules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.population.quadrature import Sobol as Sobol
    from tiltmeter.theory.classes.predict_classes import centred_class_losses as centred_class_losses
    from tiltmeter.theory.closed_form import closed_form as closed_form
    from tiltmeter.theory.crossing_bound import crossing_bound as crossing_bound
    from tiltmeter.theory.grids import crossing_count as crossing_count
    from tiltmeter.theory.grids import leader_on_grid as leader_on_grid
    from tiltmeter.theory.limits import asymptotes as asymptotes
    from tiltmeter.theory.limits import final_leader as final_leader
    from tiltmeter.theory.limits import first_leader as first_leader
    from tiltmeter.theory.limits import initial_rates as initial_rates
    from tiltmeter.theory.optimal_schedule import optimal_schedule as optimal_schedule
    from tiltmeter.theory.separability import separability as separability
    from tiltmeter.theory.stability import stability_limit as stability_limit
    from tiltmeter.theory.steered_theory import gram_limit as gram_limit


__all__ = offer(__name__)  # noqa: PLE0605
