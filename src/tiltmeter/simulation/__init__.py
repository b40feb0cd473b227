"""Simulation: runs of SGD at finite d, with the exact distribution, at a cost per step that does not grow with d.

>>> from tiltmeter import simulate
>>> from tiltmeter.problem import cases
>>> problem, sgd, _ = cases.centred_crossing()
>>> runs = simulate(problem, sgd, [1.0, 5.0], d=1_000_000, seeds=2, curves=("loss",))
>>> runs["loss"].sel(group="+", time=5.0).mean("seed").round(2).item()
0.39

`simulate` gives the curves of `predict` for many seeds. `Chain()` follows only the overlaps, an exact Markov chain for
Gaussian groups; `Direct()` is the plain d-dimensional run. `moments` gives the exact mean over runs with no simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.simulation.chain import Chain as Chain
    from tiltmeter.simulation.direct_method import Direct as Direct
    from tiltmeter.simulation.moments import moments as moments


__all__ = offer(__name__)  # noqa: PLE0605
