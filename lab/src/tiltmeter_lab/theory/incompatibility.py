"""Incompatibility: how every criterion changes when the loss is reweighted for one of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.theory.equilibrium_weights import EquilibriumWeights, equilibrium_weights

Criterion = tm.fairness.criteria.Criterion
CRITERIA = tm.fairness.criteria.CRITERIA


@dataclass(frozen=True, eq=False)
class Incompatibility:
    """One row per training (plain, then reweighted for each criterion), one column per criterion and the error.

    `table.sel(reweighted_for="statistical parity", criterion="equal opportunity")` is the unfairness in the sense of
    equal opportunity of a student whose weights minimise statistical parity.
    """

    table: xr.DataArray
    optima: tuple[EquilibriumWeights, ...]

    def worsened(self) -> dict[str, list[str]]:
        """For every criterion that was improved, what its weights make noticeably worse."""
        criteria = tuple(one.criterion for one in self.optima)
        return {one.criterion.name: one.worsened(criteria) for one in self.optima}

    def weights(self) -> dict[str, dict[Hashable, float]]:
        """The best weights for each criterion."""
        return {one.criterion.name: one.weights for one in self.optima}

    def __str__(self) -> str:
        parts = []
        for served, worse in self.worsened().items():
            row = self.table.sel(criterion=served)
            gain = row.sel(reweighted_for="nothing").item() - row.sel(reweighted_for=served).item()
            if gain < 1e-9:
                parts.append(f"no weights improve {served}")
            elif worse:
                parts.append(f"reweighting for {served} worsens {', '.join(worse)}")
            else:
                parts.append(f"reweighting for {served} worsens nothing")
        sentence = "; ".join(parts) + "."
        return sentence[0].upper() + sentence[1:]


def incompatibility(
    problem: tm.theory.Mixture,
    loss: tm.losses.Loss,
    samples: float,
    ridge: float,
    criteria: tuple[Criterion, ...] = CRITERIA,
    by_label: bool = False,
    bias: bool = True,
) -> Incompatibility:
    """Reweight the loss for each criterion in turn, and report how the others and the accuracy change.

    >>> criteria = tm.fairness.criteria.EqualOpportunity(), tm.fairness.criteria.AccuracyParity()
    >>> problem = tm.teacher_mixture(0.75, 1.0, (0.5, 1.2), 0.6, (0.4, 0.2), (0.2, -0.1))
    >>> found = incompatibility(problem, tm.Square(), 2.0, 0.5, criteria)
    >>> print(found)
    Reweighting for equal opportunity worsens ...; reweighting for accuracy parity worsens ....

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        loss: Loss to minimise, such as `tm.Logistic()`.
        samples: Training examples per dimension, n / d.
        ridge: Strength of the penalty ridge / 2 times the squared weights.
        criteria: Criteria that are tried, of `tm.fairness.criteria`.
        by_label: Whether every (group, label) has its own weight.
        bias: Whether a bias is trained beside the weights.
    """
    if not criteria:
        raise ValueError("`criteria` should name at least one criterion. Found none.")
    optima = tuple(equilibrium_weights(problem, loss, samples, ridge, one, by_label, bias) for one in criteria)
    plain = optima[0].table(criteria).sel(training="plain", drop=True)
    rows = [plain, *(one.table(criteria).sel(training="reweighted", drop=True) for one in optima)]
    names = ["nothing", *(one.name for one in criteria)]
    table = xr.concat(rows, dim="reweighted_for").assign_coords(reweighted_for=names)
    return Incompatibility(table, optima)
