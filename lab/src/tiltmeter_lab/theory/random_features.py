"""random_features: the effect of over-parametrisation on each group, for random features on a fixed training set.

Score theta.sigma(F x) with P = features d random rows in F, an odd activation, centred groups, half squared error and
ridge. In the limit of many dimensions the student obeys a few scalar equations (Gaussian equivalence; Mei and Montanari
2022, Goldt et al. 2022; for groups derived here): with om the eigenvalues of F F' per dimension,

    S_g = D_g k1_g^2 om + ks_g^2,       G = 1 / (ridge + samples sum_g p_g k_g S_g),
    V_g = int S_g G,                    k_g = s_g / (1 + s_g V_g).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

import tiltmeter as tm

#: Nodes of the spectrum of the features, and of Gaussian averages of the activation.
SPECTRUM, HERMITE = 400, 200
#: The fixed point is found when no value changes by more than this, relative to its size.
STILL = 1e-13
#: E[y nu] of a centred group.
G1 = float(np.sqrt(2.0 / np.pi))
#: The activation of a network by default, an error function.
ERF = tm.theory.students.Network(1).activation
#: Curve -> its meaning.
CURVES = {
    "loss": "half squared error, mean over points",
    "error": "share of wrong decisions",
    "training_loss": "loss on the training examples",
    "training_error": "share of wrong decisions on the training examples",
    "score_variance": "variance of the score within the group",
    "score_overlap": "covariance of the score and the teacher's field",
}


def random_features(
    problem: tm.theory.Mixture,
    features: Any,
    samples: float,
    ridge: float = 1e-5,
    weights: Mapping[Hashable, float] | None = None,
    flips: Mapping[Hashable, float] | None = None,
    activation: Any = ERF,
) -> xr.Dataset:
    """Return test and training loss and error of every group against the number of random features, after training.

    >>> problem = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> found = random_features(problem, [0.5, 1.9, 30.0], samples=2.0)
    >>> found["error"].sel(group="-").values.round(3)
    array([0.4  , 0.462, 0.365])

    `features` = P / d and `samples` = n / d, so that the student has as many parameters as samples where they are
    equal; `features` is a number or a sequence, which becomes the dimension `features`. `ridge` is lam in (1/d) sum_mu
    s_g/2 (score - y)^2 + lam/2 theta^2.

    It is for centred groups and odd activations: other activations have a mean that differs between groups and grows
    with the number of features, which this theory does not cover. It gives the end of training only, not curves over
    time.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        features: Random features per dimension, P / d: a number or a sequence.
        samples: Training examples per dimension, n / d.
        ridge: Strength of the penalty ridge / 2 times the squared weights of the features.
        weights: Factor on the loss of each group; None: all 1.
        flips: Share of wrong training labels in each group; None: none.
        activation: Function of the hidden units.
    """
    numbers = _checked(problem, samples, ridge, activation)
    groups = problem.groups
    s = _per_group(weights, groups, "weights", 1.0, np.inf)
    f = _per_group(flips, groups, "flips", 0.0, 0.5)
    grid = np.atleast_1d(np.asarray(features, dtype=float))
    if grid.ndim != 1 or not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
        raise ValueError(f"`features` should be positive numbers. Found features = {features!r}.")
    values = np.stack([_solve(numbers, float(psi), float(samples), float(ridge), s, f) for psi in grid])
    coords = {"features": grid, "group": problem.weight.coords["group"].values}
    found = xr.Dataset(
        {
            name: (("features", "group"), values[:, i], {"long_name": meaning})
            for i, (name, meaning) in enumerate(CURVES.items())
        },
        coords,
    )
    found = found.assign(loss_gap=_gap(found["loss"], groups), error_gap=_gap(found["error"], groups))
    return found if np.ndim(features) else found.isel(features=0)


def _gap(curve: xr.DataArray, groups: tuple[Hashable, ...]) -> xr.DataArray:
    """First minus second, for every pair of groups."""
    pairs = list(combinations(groups, 2))
    gaps = [curve.sel(group=a, drop=True) - curve.sel(group=b, drop=True) for a, b in pairs]
    return xr.concat(gaps, dim="pair").assign_coords(pair=[f"{a} vs {b}" for a, b in pairs])


def _checked(problem: tm.theory.Mixture, samples: float, ridge: float, activation: Any) -> tuple[np.ndarray, ...]:
    if not isinstance(problem, tm.theory.Mixture):
        raise TypeError(f"`problem` should be a Mixture of two labels. Found {type(problem).__name__}.")
    if problem.grid().sizes:
        raise ValueError(
            f"`random_features` is for one problem. Found a grid over {', '.join(map(str, problem.grid().sizes))}."
        )
    number, gram = len(problem.groups), problem.gram.values
    if gram[:number, :number].any() or problem.label_bias.values.any():
        raise ValueError(
            "`random_features` is for centred groups, without shift and label bias. For a linear student with them use "
            "`equilibrium`."
        )
    for name, value in (("samples", samples), ("ridge", ridge)):
        if not float(value) > 0:
            raise ValueError(f"`{name}` should be positive. Found {name} = {value:g}.")
    D = problem.variance.values
    k1, ks = _activation_constants(activation, D)
    return problem.weight.values, D, gram[number:, number:], k1, ks


def _activation_constants(activation: Any, D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear part k1 = E sigma'(sqrt(D) xi) and the spread ks of the rest, per group; odd activations only."""
    if isinstance(activation, type) or not (callable(activation) and hasattr(activation, "slope")):
        raise TypeError(f"`activation` should be Erf(), Tanh(), Identity() or your own. Found {activation!r}.")
    nodes, weight = np.polynomial.hermite_e.hermegauss(HERMITE)
    weight = weight / weight.sum()
    x = np.sqrt(D)[:, None] * nodes
    value, slope = np.asarray(activation(x)), np.asarray(activation.slope(x))
    if np.abs(value + np.asarray(activation(-x))).max() > 1e-9:
        raise ValueError(
            f"`random_features` is for odd activations, as Erf(), Tanh(), Identity(). Found {activation!r}."
        )
    k1 = slope @ weight
    return k1, np.sqrt(np.maximum((value**2) @ weight - D * k1**2, 0.0))


def _solve(
    numbers: tuple[np.ndarray, ...], psi: float, alpha: float, lam: float, s: np.ndarray, f: np.ndarray
) -> np.ndarray:
    """loss, error, training loss, training error, score variance and overlap, each per group."""
    p, D, T, k1, ks = numbers
    om, mass = _spectrum(psi)
    S = D[:, None] * k1[:, None] ** 2 * om + ks[:, None] ** 2

    def resolvent(k: np.ndarray) -> np.ndarray:
        return np.asarray(1.0 / (lam + alpha * (p * k) @ S))

    k = _fixed_point(lambda k: s / (1.0 + s * ((S * resolvent(k)) @ mass)), s.copy())
    R = resolvent(k)
    g = G1 * (1.0 - 2.0 * f)
    H = alpha * p * k * k1 * np.sqrt(D) * g
    rho = k1 * np.sqrt(D) * (T @ H) * ((om * R) @ mass)
    N = (S * R**2 * mass) @ S.T
    source = float(H @ T @ H) * ((om * R**2 * S) @ mass)
    push = N * (alpha * p * k**2)[None, :]
    Q = np.linalg.solve(np.eye(len(p)) - push, source + push @ (1.0 - 2.0 * g * rho))
    loss, training = 0.5 * (1.0 + Q - 2.0 * G1 * rho), 0.5 * (k / s) ** 2 * (1.0 + Q - 2.0 * g * rho)
    error = np.arccos(np.clip(rho / np.sqrt(Q), -1.0, 1.0)) / np.pi
    # A training score is shrunk towards its label: u times a fresh score plus (1 - u) times the label.
    u = k / s
    wrong = _training_error(u, rho, Q, f)
    return np.stack([loss, error, training, wrong, Q, rho])


def _training_error(u: np.ndarray, rho: np.ndarray, Q: np.ndarray, f: np.ndarray) -> np.ndarray:
    """P(y (u h + (1 - u) y) < 0) for a fresh score h of variance Q and overlap rho, and labels wrong with share f."""
    nodes, weight = np.polynomial.legendre.leggauss(400)
    nu = 4.75 * (1.0 + nodes)  # the teacher's field, positive by symmetry
    weight = 4.75 * weight * G1 * np.exp(-0.5 * nu**2)
    rest = np.sqrt(np.maximum(Q - rho**2, 1e-300))
    reach = ((1.0 - u) / u)[:, None]
    right, wrong = (ndtr(-(reach + sign * rho[:, None] * nu) / rest[:, None]) @ weight for sign in (1.0, -1.0))
    return np.asarray((1.0 - f) * right + f * wrong)


def _spectrum(psi: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of F F' and their mass per dimension: Marchenko-Pastur, and zeros where P exceeds d."""
    theta = (np.arange(SPECTRUM) + 0.5) * np.pi / SPECTRUM
    om = 1.0 + psi + 2.0 * np.sqrt(psi) * np.cos(theta)
    mass = (2.0 * np.sqrt(psi) * np.sin(theta)) ** 2 / (2.0 * np.pi * om) * np.pi / SPECTRUM
    mass *= min(1.0, psi) / mass.sum()
    return np.append(om, 0.0), np.append(mass, max(psi - 1.0, 0.0))


def _fixed_point(step: Callable[[np.ndarray], np.ndarray], k: np.ndarray) -> np.ndarray:
    for _ in range(20000):
        new = 0.5 * (k + step(k))
        if np.abs(new - k).max() <= STILL * np.abs(new).max():
            return np.asarray(new)
        k = new
    raise ValueError("The fixed point was not found: raise `ridge`, which keeps the student away from interpolation.")


def _per_group(
    values: Mapping[Hashable, float] | None, groups: tuple[Hashable, ...], name: str, default: float, most: float
) -> np.ndarray:
    given = values or {}
    for key in given:
        if key not in groups:
            raise KeyError(f"`{name}` names the unknown group {key!r}. There are: {', '.join(map(repr, groups))}.")
    found = np.array([float(given.get(group, default)) for group in groups])
    low = 0.0 if name == "flips" else np.nextafter(0.0, 1.0)
    if not ((found >= low) & (found < most)).all():
        bounds = "lie in [0, 0.5)" if name == "flips" else "be positive"
        raise ValueError(f"`{name}` should {bounds}. Found {found.min():g} to {found.max():g}.")
    return np.asarray(found)
