"""Pictures of exact theory: drivers, phase diagrams, sweeps of trained students, and what a fixed set moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.theory.plot.drivers import drivers as drivers
    from tiltmeter.theory.plot.equilibrium_sweep import double_descent as double_descent
    from tiltmeter.theory.plot.equilibrium_sweep import equilibrium_sweep as equilibrium_sweep
    from tiltmeter.theory.plot.memorisation import memorisation as memorisation
    from tiltmeter.theory.plot.phase_diagram import phase_diagram as phase_diagram

__all__ = offer(__name__)  # noqa: PLE0605
