"""truncated-accuracy: the accuracy of a network that is given only the leading principal components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.principal_components import PrincipalComponents, components_of
from tiltmeter.measures.snapshot import Snapshot, group_share


@dataclass(frozen=True)
class TruncatedAccuracy:
    """Share of right decisions on inputs truncated to their leading components, per number kept and group.

    >>> from tiltmeter.data.public.digits import digits
    >>> from tiltmeter_lab.measures.measure import measure
    >>> found = measure(TruncatedAccuracy((1, 64)), torch.nn.Linear(64, 10), digits()[1])["truncated_accuracy"]
    >>> found.dims, found.kept.values.tolist()
    (('kept', 'group'), [1, 64])

    `truncated_accuracy_null` is the share of the most common label in each group, the best that a constant decision can
    do. With 0 components every input is the mean.

    What it does not mean: a network that needs few components reaches its full accuracy early. That does *not* mean
    that it ignores the others: it may use them where they are present. Truncated inputs are unlike those it was trained
    on, and a lower accuracy may come from that alone.

    Args:
        kept: Numbers of components that remain; empty: 0, 1, 2, 4, ... and all.
        components: Components to use, such as `principal_components(train.x)`; None: those of the held-out points.
    """

    kept: tuple[int, ...] = ()
    components: PrincipalComponents | None = None

    title: ClassVar[str] = "accuracy on inputs truncated to the leading principal components"
    takes: ClassVar[str] = "any classifier of inputs that are numbers, not tokens"
    exact: ClassVar[str] = "with all components kept it is the accuracy itself"
    absent: ClassVar[str] = "where labels depend on components of small variance, or all variances are equal"
    weighs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if any(k < 0 or k != int(k) for k in self.kept) or list(self.kept) != sorted(set(self.kept)):
            raise ValueError(f"`kept` should be whole numbers from 0, ascending. Found kept = {self.kept}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        seen, data = snapshot.model, snapshot.data
        if not seen.x.is_floating_point():
            raise ValueError("Components need inputs that are numbers. Found integer inputs (tokens).")
        if not snapshot.task.decides:
            raise ValueError("A regression makes no decisions: `truncated-accuracy` needs labels.")
        found = self._components(snapshot)
        rows = seen.x.flatten(1).double().cpu().numpy()
        kept = self._kept(found)
        values, errors = [], []
        for k in kept:
            inputs = torch.as_tensor(found.truncate(rows, k), dtype=seen.x.dtype).reshape(seen.x.shape)
            share, error = group_share(seen.decide(seen.scores(inputs)) == data.y, data)
            values.append(share)
            errors.append(error)
        coords = {"kept": np.asarray(kept), "group": data.group_labels}
        said = "accuracy from the leading principal components alone"
        return {
            "truncated_accuracy": snapshot.reading(
                "truncated_accuracy", np.stack(values), coords, long_name=said, better="higher"
            ),
            "truncated_accuracy_se": snapshot.reading(
                "truncated_accuracy_se", np.stack(errors), coords, long_name=f"standard error of the {said}"
            ),
            "truncated_accuracy_null": snapshot.by_group(
                "truncated_accuracy_null",
                commonest_share(snapshot),
                long_name="share of the most common label of the group",
                better="neither",
            ),
        }

    def passes(self, snapshot: Snapshot) -> float:
        """One for each number of components kept."""
        return float(len(self._kept(self._components(snapshot))))

    def _components(self, snapshot: Snapshot) -> PrincipalComponents:
        found = components_of(snapshot.data) if self.components is None else self.components
        inputs = int(np.prod(snapshot.data.x.shape[1:]))
        if found.directions.shape[1] != inputs:
            raise ValueError(
                f"`components` should fit the held-out points, with {inputs} numbers. Found "
                f"{found.directions.shape[1]}."
            )
        return found

    def _kept(self, components: PrincipalComponents) -> list[int]:
        if self.kept:
            return list(self.kept)
        return [0, *(2**i for i in range(len(components).bit_length()) if 2**i < len(components)), len(components)]


def commonest_share(snapshot: Snapshot) -> np.ndarray:
    """For each group, the largest share of a label, by weight: the accuracy of the best constant decision."""
    data = snapshot.data
    labels, places = np.unique(data.y, return_inverse=True)
    mass = np.ones(len(data)) if data.weights is None else data.weights
    counts = np.zeros((len(data.groups), len(labels)))
    np.add.at(counts, (data.codes, places), mass)
    with np.errstate(invalid="ignore"):
        return np.asarray((counts / counts.sum(1, keepdims=True)).max(1))
