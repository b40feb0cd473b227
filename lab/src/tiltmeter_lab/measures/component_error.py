"""component-error: what a deep linear network has learned along each principal component (Hacohen, 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr
from torch import nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.principal_components import PrincipalComponents, components_of
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.networks import compact_weight, deep_linear


@dataclass(frozen=True)
class ComponentError:
    """Distance of the compact weight W from the least-squares optimum W*, along each principal component u_i.

    >>> from tiltmeter_lab.measures.measure import measure
    >>> from tiltmeter.modules.networks import deep_linear
    >>> x = np.random.default_rng(0).normal(size=(60, 3)) * [3, 2, 1]
    >>> data = GroupedData(x, x @ [1, 1, 1], ["a"] * 60)
    >>> sorted(measure(ComponentError(), deep_linear(3, 10, 2), data))
    ['component_error', 'component_error_null', 'component_variance', 'component_weight']

    `component_error` is the norm of (W - W*) u_i over outputs. Its null value is that of a network that outputs zero,
    the norm of W* u_i. `component_weight` is W u_i per output; `component_spread` is computed from it and needs no
    optimum. `component_variance` is the variance of the inputs along u_i, the same at every observation.

    With half the mean squared error and gradient descent with learning rate eta on these points, the error of a network
    of one layer along component i is exactly (1 - eta variance_i)^t times the initial error. The optimum is that of
    centred inputs and labels: train on centred data, or set `centre=False`. Labels of several outputs are one-hot.

    What it does not mean: a small error is *not* a small loss, because the loss weights component i by its variance.
    Components of equal variance are arbitrary. The order needs gradient descent: Adam, whitening and batch
    normalisation remove or invert it.

    Args:
        components: Leading components that are kept; None: all.
        centre: Whether inputs and labels are centred before the optimum is found.
    """

    components: int | None = None
    centre: bool = True

    title: ClassVar[str] = "error of a deep linear network along each principal component"
    takes: ClassVar[str] = "a stack of Linear layers without bias; for any other network see truncated-accuracy"
    exact: ClassVar[str] = "one layer, gradient descent, half the mean squared error: (1 - eta variance)^t"
    absent: ClassVar[str] = "with Adam, whitened inputs or large gradient noise the order is not that of the variances"

    def __post_init__(self) -> None:
        if self.components is not None and self.components < 1:
            raise ValueError(f"`components` should be at least 1. Found components = {self.components}.")

    @classmethod
    def example(cls, seed: int) -> tuple[ComponentError, nn.Module, GroupedData]:
        """The measure with a small linear network, and inputs with three different scales."""
        x = np.random.default_rng(seed).normal(size=(60, 3)) * [3.0, 2.0, 1.0]
        return cls(), deep_linear(3, 10, 2, scale=0.5), GroupedData(x, x.sum(1), ["all"] * 60)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        found = components_of(snapshot.data, self.centre)
        weight = compact_weight(snapshot.model.module).double().cpu().numpy()
        if weight.shape[1] != found.directions.shape[1]:
            raise ValueError(
                f"The compact weight should fit the inputs. Found {weight.shape[1]} inputs of the network and "
                f"{found.directions.shape[1]} of the data."
            )
        count = min(len(found), self.components or len(found))
        directions = found.directions[:count]
        optimum = least_squares(snapshot.data, found, snapshot.task.outputs)[:, :count]
        along = weight @ directions.T
        component = {"component": np.arange(1, count + 1)}
        return {
            "component_error": snapshot.reading(
                "component_error",
                np.linalg.norm(along - optimum, axis=0),
                component,
                long_name="distance from the least-squares optimum along a principal component",
                better="lower",
            ),
            "component_error_null": snapshot.reading(
                "component_error_null",
                np.linalg.norm(optimum, axis=0),
                component,
                long_name="distance from the least-squares optimum of a network that outputs zero",
                better="neither",
            ),
            "component_weight": snapshot.reading(
                "component_weight",
                np.ascontiguousarray(along.T),
                {**component, "output": np.arange(len(weight))},
                long_name="compact weight along a principal component",
                better="neither",
                null="value at initialisation",
            ),
            "component_variance": snapshot.reading(
                "component_variance",
                found.variances[:count],
                component,
                long_name="variance of the inputs along a principal component",
                better="neither",
                null="none: it is a property of the data",
            ),
        }


def least_squares(data: GroupedData, components: PrincipalComponents, outputs: int) -> np.ndarray:
    """W* along each component, (outputs, components): the regression of the labels (one-hot for several outputs)."""
    y = np.asarray(data.y, dtype=float)[:, None] if outputs == 1 else np.eye(outputs)[data.y.astype(int)]
    rows = np.asarray(data.x, dtype=float).reshape(len(y), -1) - components.mean
    if components.mean.any():
        y = y - y.mean(0)
    return np.asarray((y.T @ (rows @ components.directions.T)) / len(y) / components.variances)


def component_spread(weights: np.ndarray, components: PrincipalComponents) -> np.ndarray:
    """Standard deviation over seeds of W u_i, for a stack (seeds, outputs, inputs) of compact weights.

    >>> from tiltmeter.data.principal_components import principal_components
    >>> x = np.random.default_rng(0).normal(size=(50, 3)) * [3, 2, 1]
    >>> component_spread(np.zeros((4, 1, 3)), principal_components(x)).tolist()
    [0.0, 0.0, 0.0]

    Squares are averaged over outputs. It falls to zero once all seeds have found the same W u_i: a sign of learning
    that needs no optimum. It is also zero if all seeds started from the same weights.
    """
    stack = np.asarray(weights, dtype=float)
    if stack.ndim != 3 or len(stack) < 2:
        raise ValueError(f"`weights` should be (seeds, outputs, inputs), seeds at least 2. Found shape {stack.shape}.")
    along = stack @ components.directions.T
    return np.asarray(np.sqrt(along.var(0, ddof=1).mean(0)))
