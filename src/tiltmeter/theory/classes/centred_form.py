"""The closed form of several classes in centred groups from a zero start: a second route, independent of integration.

With W_inf = sum_g p_g sqrt(D_g) J_g / D, gamma = lr D and q = lr (2 D - lr D2), D and D2 the mean variance and the mean
squared variance, W(t) = W_inf (1 - e^{-gamma t}) and tr Q(t) is a sum of 1, e^{-gamma t} and e^{-qt}. Class losses also
contain e^{-2 gamma t}, through W K W': one rate more than group losses, which allows one crossing more.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from tiltmeter.population.classes import moments
from tiltmeter.population.classes.moments import ClassStudents, class_moments, square_class_losses, square_losses
from tiltmeter.population.quadrature import Sobol
from tiltmeter.problem.applied_interventions import refuse_interventions
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.sgd import SGD


def centred_class_losses(
    problem: ClassMixture, sgd: SGD, times: np.ndarray, quadrature: Sobol = moments.NODES
) -> tuple[np.ndarray, np.ndarray]:
    """Return losses of groups (T, G) and of classes (T, G, C) as sums of exponentials.

    >>> from tiltmeter.problem.class_mixture import class_mixture
    >>> centred_class_losses(class_mixture(3), SGD(lr=0.2), np.array([0.0]))[0].round(4)
    array([[0.3333, 0.3333]])

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, in units of t = steps / d.
        quadrature: Nodes of the averages.
    """
    refuse_interventions(sgd, "centred_class_losses")
    data = class_moments(problem, quadrature)
    if data.mu.any():
        raise ValueError("`centred_class_losses` is for groups without means. Use `predict`.")
    for field in fields(SGD):
        if field.name != "lr" and getattr(sgd, field.name) != field.default:
            raise ValueError(
                f"`centred_class_losses` is for plain SGD from zero, without {field.name}. Found {field.name} = "
                f"{getattr(sgd, field.name)!r}: use `predict`."
            )
    if callable(sgd.lr):
        raise ValueError("`centred_class_losses` needs a constant learning rate. For schedules use `predict`.")
    lr, p, D, count = float(sgd.lr), data.p, data.D, len(data.classes)  # type: ignore[arg-type]
    mix, mix2 = float(p @ D), float(p @ D**2)
    gamma, q = lr * mix, lr * (2.0 * mix - lr * mix2)
    limit = np.einsum("g,gcr->cr", p * np.sqrt(D), data.J) / mix
    pull = 2.0 * lr * float(np.einsum("g,gcr,cr->", p * np.sqrt(D) * (1.0 - lr * D), data.J, limit))
    noise = lr**2 * mix * (1.0 - 1.0 / count)
    slow, fast = np.exp(-gamma * times), np.exp(-q * times)
    # (e^{-gamma t} - e^{-qt}) / (q - gamma), and t e^{-qt} where the rates meet.
    both = times * fast if abs(q - gamma) < 1e-9 * q else (slow - fast) / (q - gamma)
    trace = (noise + pull) / q * (1.0 - fast) - pull * both
    Q = np.zeros((len(times), count, count))
    Q[:, 0, 0] = trace  # losses depend only on the trace of Q
    students = ClassStudents(limit * (1.0 - slow)[:, None, None], Q, np.zeros((len(times), count)))
    return square_losses(data, students), square_class_losses(data, students)
