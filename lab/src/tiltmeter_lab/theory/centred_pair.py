"""Two centred groups, in the symbols of the papers: the problem for which prior knowledge has short formulas."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import tiltmeter as tm

#: E[y nu] of a centred group: sqrt(2 / pi).
G = float(np.sqrt(2.0 / np.pi))


@dataclass(frozen=True)
class CentredPair:
    """p: shares; D: variances; T: overlap of the teachers; R0, Q0: the start; each pair in the order of the groups."""

    groups: tuple[Hashable, ...]
    p: np.ndarray
    D: np.ndarray
    T: float
    lr: float
    R0: np.ndarray
    Q0: float

    @property
    def Dmix(self) -> float:
        return float(self.p @ self.D)

    @property
    def gram(self) -> np.ndarray:
        """Overlaps of the two teachers."""
        return np.array([[1.0, self.T], [self.T, 1.0]])

    @property
    def gamma(self) -> float:
        """The rate at which R relaxes."""
        return self.lr * self.Dmix

    @property
    def q(self) -> float:
        """The rate at which Q relaxes."""
        return float(self.lr * (2.0 * self.Dmix - self.lr * (self.p @ self.D**2)))

    @property
    def R_limit(self) -> np.ndarray:
        return np.asarray(G * self.gram @ (self.p * np.sqrt(self.D)) / self.Dmix)

    @property
    def Q_limit(self) -> float:
        pull = 2.0 * G * (self.p * np.sqrt(self.D) * (1.0 - self.lr * self.D)) @ self.R_limit
        return float((self.lr * self.Dmix + pull) / (2.0 * self.Dmix - self.lr * (self.p @ self.D**2)))

    def losses(self, R: np.ndarray, Q: float) -> np.ndarray:
        """Half squared error of both groups."""
        return np.asarray(0.5 * (1.0 + self.D * Q - 2.0 * G * np.sqrt(self.D) * R))

    def optimum(self, group: int) -> np.ndarray:
        """Overlaps with both teachers of the best student of one group alone, w* = sqrt(2 / (pi D)) teacher."""
        return np.asarray(G / np.sqrt(self.D[group]) * self.gram[group])


def centred_pair(problem: tm.theory.Mixture, sgd: tm.SGD, function: str) -> CentredPair:
    """Return the numbers of two centred groups under plain SGD; refuse anything else, naming what treats it."""
    groups, gram = problem.groups, problem.gram.values
    if len(groups) != 2:
        raise ValueError(f"`{function}` is for two groups. Found {len(groups)}. Use `predict` or `crossing_bound`.")
    if problem.grid().sizes:
        raise ValueError(f"`{function}` is for one problem; select one point of {', '.join(map(str, problem.grid()))}.")
    if gram[:2, :2].any() or problem.label_bias.values.any():
        raise ValueError(
            f"`{function}` is for centred groups, without shift and label bias. Use `predict`, or `crossing_bound`, "
            "which has no such limit."
        )
    plain: dict[str, Any] = {f.name: f.default for f in fields(tm.SGD) if f.name not in ("lr", "start")}
    for name, default in plain.items():
        if getattr(sgd, name) != default:
            extra = ", ".join(type(law).__name__ for law in sgd.interventions) if name == "interventions" else name
            raise ValueError(f"`{function}` is for plain SGD, without {extra}. Use `predict`, or `crossing_bound`.")
    if callable(sgd.lr):
        raise ValueError(f"`{function}` needs a constant learning rate. For schedules use `predict`.")
    p, D = problem.weight.values, problem.variance.values
    limit = float(2.0 * (p @ D) / (p @ D**2))
    start = tm.predict(problem, replace(sgd, lr=0.5 * limit), [0.0], curves=("R", "Q"))
    lr = np.asarray(sgd.lr, dtype=float)
    if lr.ndim:
        raise ValueError(f"`{function}` is for one learning rate. Found {sgd.lr!r}.")
    bias = getattr(sgd.start, "bias", 0.0)
    if bias != 0.0:
        raise ValueError(f"`{function}` is for a student without bias. Found bias = {bias:g}. Use `predict`.")
    if lr >= limit:
        raise ValueError(f"`lr` should lie below the stability limit {limit:.6g} of this problem. Found lr = {lr:g}.")
    R0, Q0 = start["R"].isel(time=0).values, float(start["Q"].isel(time=0))
    return CentredPair(groups, p, D, float(gram[2, 3]), float(lr), R0, Q0)
