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
    from tiltmeter.theory.classes.initial_class_rates import initial_class_rates as initial_class_rates
    from tiltmeter.theory.closed_form import closed_form as closed_form
    from tiltmeter.theory.equalising_pulls import equalising_pulls as equalising_pulls
    from tiltmeter.theory.equilibrium import coupled_equilibrium as coupled_equilibrium
    from tiltmeter.theory.first_gap import first_gap as first_gap
    from tiltmeter.theory.gram_limit import gram_limit as gram_limit
    from tiltmeter.theory.incompatibility import incompatibility as incompatibility
    from tiltmeter.theory.limits import asymptotes as asymptotes
    from tiltmeter.theory.limits import final_leader as final_leader
    from tiltmeter.theory.limits import first_leader as first_leader
    from tiltmeter.theory.limits import initial_rates as initial_rates
    from tiltmeter.theory.optimal_schedule import optimal_schedule as optimal_schedule
    from tiltmeter.theory.prior.better_order import better_order as better_order
    from tiltmeter.theory.prior.critical_length import critical_length as critical_length
    from tiltmeter.theory.prior.crossing_bound import crossing_bound as crossing_bound
    from tiltmeter.theory.prior.forgetting import forgetting as forgetting
    from tiltmeter.theory.prior.gap_parabola import gap_parabola as gap_parabola
    from tiltmeter.theory.prior.one_after_the_other import one_after_the_other as one_after_the_other
    from tiltmeter.theory.random_features import random_features as random_features
    from tiltmeter.theory.separability import separability as separability
    from tiltmeter.theory.stability import stability_limit as stability_limit

_HOMES = {
    "stability_limit": "theory.stability",
    "initial_rates": "theory.limits",
    "asymptotes": "theory.limits",
    "first_leader": "theory.limits",
    "final_leader": "theory.limits",
    "closed_form": "theory.closed_form",
    "gram_limit": "theory.gram_limit",
    "first_gap": "theory.first_gap",
    "equalising_pulls": "theory.equalising_pulls",
    "optimal_schedule": "theory.optimal_schedule",
    "coupled_equilibrium": "theory.equilibrium",
    "separability": "theory.separability",
    "incompatibility": "theory.incompatibility",
    "Sobol": "population.quadrature",
    # several classes, over-parametrisation
    "initial_class_rates": "theory.classes.initial_class_rates",
    "random_features": "theory.random_features",
    # prior knowledge
    "crossing_bound": "theory.prior.crossing_bound",
    "critical_length": "theory.prior.critical_length",
    "gap_parabola": "theory.prior.gap_parabola",
    "one_after_the_other": "theory.prior.one_after_the_other",
    "forgetting": "theory.prior.forgetting",
    "better_order": "theory.prior.better_order",
}

__all__ = offer(__name__, _HOMES)  # noqa: PLE0605
