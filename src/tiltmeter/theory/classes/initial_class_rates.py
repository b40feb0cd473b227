"""initial_class_rates: which classes of which groups get worse at first, in closed form."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tiltmeter.population.classes.moments import class_moments
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.starts import Zero
from tiltmeter.record.labelled import labels_array
from tiltmeter.shown_text import NotebookText
from tiltmeter.theory.classes.predict_classes import class_settings


@dataclass(frozen=True)
class InitialClassRates(NotebookText):
    """Time derivatives at t = 0 of the loss of every class in every group; `rates` has dims (group, class)."""

    rates: xr.DataArray

    @property
    def unlearnt(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """The (group, class) pairs whose loss rises first."""
        groups, classes = (self.rates.coords[dim].values.tolist() for dim in ("group", "class"))
        return tuple((g, c) for g in groups for c in classes if float(self.rates.sel({"group": g, "class": c})) > 0)

    def __str__(self) -> str:
        if not self.unlearnt:
            return "Every class of every group is learnt from the first step."
        named = ", ".join(f"class {c} of {g}" for g, c in self.unlearnt)
        return f"First unlearnt: {named}. Every other class is learnt from the first step."


def initial_class_rates(problem: ClassMixture, sgd: SGD) -> InitialClassRates:
    """Return how fast the loss of every class changes at the first step of a student that starts from zero.

    >>> from tiltmeter.problem.class_mixture import class_mixture
    >>> rare = class_mixture(3, rho=0.8, overlap=0.8, class_bias=(0.6, 0.0, -0.7))
    >>> print(initial_class_rates(rare, SGD(lr=0.2, train_bias=True)))
    First unlearnt: class 2 of +, class 2 of -. Every other class is learnt from the first step.

    Rare classes may get worse before they get better: frequent classes pull the scores away from them, and the noise of
    the steps adds to all losses.

    The rates are those of the squared error. A falling loss does not mean that the class is classified correctly.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
    """
    if not isinstance(sgd, SGD) or not isinstance(sgd.start, Zero):
        raise ValueError("`initial_class_rates` is for an SGD that starts from Zero(). From elsewhere use `predict`.")
    data = class_moments(problem)
    settings = class_settings(data, sgd)
    lr, p, s = settings.at(0.0)
    count, P = len(data.classes), p * s
    root = np.sqrt(data.D)
    dW = lr * (np.einsum("g,gc,gr->cr", P, data.ybar, data.mu) + np.einsum("g,gcr->cr", P * root, data.J))
    dbias = lr * P @ data.ybar if sgd.train_bias else np.zeros(count)
    noise = lr**2 / settings.batch * float((p * s**2) @ data.D) * (1.0 - 1.0 / count)
    target = np.eye(count) - 1.0 / count
    drift = dbias + np.einsum("or,gr->go", dW, data.mu)  # (G, output)
    with np.errstate(invalid="ignore", divide="ignore"):
        given = np.einsum("or,gcr->gco", dW, data.J) * root[:, None, None] / data.pi[:, :, None]
    rates = -np.einsum("co,gco->gc", target, drift[:, None, :] + given) + 0.5 * data.D[:, None] * noise
    coords = {"group": labels_array(data.groups), "class": labels_array(data.classes)}
    return InitialClassRates(xr.DataArray(rates, dims=("group", "class"), coords=coords))
