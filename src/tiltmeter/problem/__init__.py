"""Problem: what is learned and how, as frozen values that theory, simulation and training share.

>>> from tiltmeter.problem.sgd import SGD
>>> from tiltmeter.problem.teacher_mixture import teacher_mixture
>>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
>>> problem.groups, SGD(lr=0.1).batch
(('+', '-'), 1)

It contains the `Mixture` of Gaussian groups, each labelled by a teacher; the `SGD` that trains a student on it; the
start of the student; the objective of a fully trained student; and the same values as plain arrays for computations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.problem import cases as cases
    from tiltmeter.problem import optimisers as optimisers
    from tiltmeter.problem import starts as starts
    from tiltmeter.problem import students as students
    from tiltmeter.problem.class_mixture import ClassMixture as ClassMixture
    from tiltmeter.problem.class_mixture import class_mixture as class_mixture
    from tiltmeter.problem.full_batch import Descent as Descent
    from tiltmeter.problem.mixture import Mixture as Mixture

__all__ = offer(__name__)  # noqa: PLE0605
