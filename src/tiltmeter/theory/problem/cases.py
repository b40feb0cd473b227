"""Named cases: problems with known answers, as starting points and for checks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.teacher_mixture import teacher_mixture

__all__ = ["centred_crossing", "no_bias", "no_crossing", "spurious_correlation", "three_phases"]


class Case(NamedTuple):
    """A problem, how it is trained, and times that show its course.

    >>> import tiltmeter as tm
    >>> case = tm.theory.cases.three_phases()
    >>> case.problem.groups, case.sgd.lr, case.times[-1].item()
    (('+', '-'), 0.5, 200.0)
    >>> tm.predict(*case, curves=("loss",))["loss"].dims
    ('time', 'group')

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times that show its course.
    """

    problem: Mixture
    sgd: SGD
    times: np.ndarray


def centred_crossing() -> Case:
    """No shift; "-" has three times the variance, "+" four times the data.

    >>> import tiltmeter as tm
    >>> [round(change.time, 2) for change in tm.leaders(tm.predict(*centred_crossing()), "loss").changes]
    [5.64]

    The group with the larger variance is learned first; the group with more data wins in the end. The losses cross
    once, at t = 5.64.
    """
    problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    return Case(problem, SGD(lr=0.1), np.geomspace(0.01, 200.0, 400))


def three_phases() -> Case:
    """First the shift, then the variance, then the representation decides: the losses cross twice, at t = 1.13 and
    11.88.

    >>> import tiltmeter as tm
    >>> [round(change.time, 2) for change in tm.leaders(tm.predict(*three_phases()), "loss").changes]
    [1.13, 11.88]

    The parameters are those of figure 10 of Jain et al. (2024) with alpha interpreted as label thresholds, and lr =
    0.5.
    """
    problem = teacher_mixture.from_thresholds((0.471, -0.188), rho=0.7, shift=4.0, variance=(0.1, 1.0), overlap=0.9)
    return Case(problem, SGD(lr=0.5), np.geomspace(0.01, 200.0, 400))


def spurious_correlation() -> Case:
    """Equal groups, except for a shift that partly predicts the label: a shortcut that is learned first, then fades.

    >>> import tiltmeter as tm
    >>> tm.leaders(tm.predict(*spurious_correlation()), "loss").changes
    ()

    The weight on the shift beyond what the teacher needs is largest at t = 11.4 and decays to a tenth of that. By
    symmetry neither group ever leads: a control in which no bias between groups may appear.
    """
    problem = teacher_mixture(rho=0.5, shift=1.0, variance=(0.5, 0.5), overlap=1.0, shift_overlap=(0.3, 0.3))
    return Case(problem, SGD(lr=0.1), np.geomspace(0.01, 400.0, 400))


def no_crossing() -> Case:
    """Centred groups with nearly unrelated teachers: the group with more data leads from start to end.

    >>> import tiltmeter as tm
    >>> [phase.leader for phase in tm.leaders(tm.predict(*no_crossing()), "loss").phases]
    ['+']
    """
    problem = teacher_mixture(rho=0.7, variance=(0.5, 1.0), overlap=0.2)
    return Case(problem, SGD(lr=0.1), np.geomspace(0.01, 200.0, 400))


def no_bias() -> Case:
    """Two groups that differ only in their teachers: no gap at any time. The negative control.

    >>> import tiltmeter as tm
    >>> loss = tm.predict(*no_bias())["loss"]
    >>> bool(abs(loss.sel(group="+") - loss.sel(group="-")).max() < 1e-12)
    True
    """
    problem = teacher_mixture(rho=0.5, variance=(1.0, 1.0), overlap=0.5)
    return Case(problem, SGD(lr=0.1), np.geomspace(0.01, 200.0, 400))
