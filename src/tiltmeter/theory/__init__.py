"""Theory: the wing of exact results for groups drawn from Gaussian mixtures, and why bias has a time.

>>> import tiltmeter as tm
>>> problem, sgd, times = tm.theory.cases.centred_crossing()
>>> tm.predict(problem, sgd, times)["loss"].isel(time=-1).values.round(3)
array([0.234, 0.442])

`problem` has the values that theory and simulation share, `dynamics` the exact curves, `simulation` runs at finite d,
`population` exact rates of a score; `drivers` splits a gap into its causes, `memorisation` compares fresh examples with
a fixed set, `plot` draws. The daily names (`tm.predict`, `tm.simulate`, `tm.equilibrium`, `tm.drivers`) are at the top.
Nothing outside this wing needs it: a run that it made is judged and reported without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.theory import plot as plot
    from tiltmeter.theory.dynamics.classes.predict_classes import centred_class_losses as centred_class_losses
    from tiltmeter.theory.dynamics.closed_form import closed_form as closed_form
    from tiltmeter.theory.dynamics.crossing_bound import crossing_bound as crossing_bound
    from tiltmeter.theory.dynamics.grids import crossing_count as crossing_count
    from tiltmeter.theory.dynamics.grids import leader_on_grid as leader_on_grid
    from tiltmeter.theory.dynamics.limits import asymptotes as asymptotes
    from tiltmeter.theory.dynamics.limits import final_leader as final_leader
    from tiltmeter.theory.dynamics.limits import first_leader as first_leader
    from tiltmeter.theory.dynamics.limits import initial_rates as initial_rates
    from tiltmeter.theory.dynamics.optimal_schedule import optimal_schedule as optimal_schedule
    from tiltmeter.theory.dynamics.separability import separability as separability
    from tiltmeter.theory.dynamics.stability import stability_limit as stability_limit
    from tiltmeter.theory.dynamics.steered_theory import gram_limit as gram_limit
    from tiltmeter.theory.memorisation import memorisation as memorisation
    from tiltmeter.theory.population.quadrature import Sobol as Sobol
    from tiltmeter.theory.problem import cases as cases
    from tiltmeter.theory.problem import optimisers as optimisers
    from tiltmeter.theory.problem import starts as starts
    from tiltmeter.theory.problem import students as students
    from tiltmeter.theory.problem.class_mixture import ClassMixture as ClassMixture
    from tiltmeter.theory.problem.class_mixture import class_mixture as class_mixture
    from tiltmeter.theory.problem.full_batch import Descent as Descent
    from tiltmeter.theory.problem.mixture import Mixture as Mixture
    from tiltmeter.theory.samples import samples as samples
    from tiltmeter.theory.simulation.chain import Chain as Chain
    from tiltmeter.theory.simulation.direct_method import Direct as Direct
    from tiltmeter.theory.simulation.moments import moments as moments


__all__ = offer(__name__)  # noqa: PLE0605
