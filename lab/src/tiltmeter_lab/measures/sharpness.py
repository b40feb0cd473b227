"""sharpness: the largest eigenvalues and the trace of the Hessian of the loss, of all points and of each group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.modules.tangent.gradient import count_of, trained
from tiltmeter.modules.tangent.hessian import PASSES, hessian_times, top_eigenpairs
from tiltmeter_lab.measures.shared.risk import point_losses


@dataclass(frozen=True)
class Sharpness:
    """The largest `count` eigenvalues of the Hessian of the mean loss, by Lanczos; its trace, by Hutchinson's estimate.

    >>> import tiltmeter as tm, torch
    >>> import tiltmeter_lab as lab
    >>> data = tm.GroupedData([[2.0]] * 60, [1, -1] * 30, ["a", "b"] * 30)
    >>> found = lab.measure(Sharpness(count=1), torch.nn.Linear(1, 1, bias=False), data, tm.Square())
    >>> float(found["hessian_top"][0]), float(found["hessian_trace"])  # x^2
    (4.0, 4.0)

    - `hessian_top` (rank 1, 2, ...): eigenvalues for all points; `hessian_top_error`: the distance within which a true
      eigenvalue lies;
    - `group_hessian_top`: the largest eigenvalue for the mean loss of each group alone; with `smallest`, also
      `group_hessian_bottom`, the smallest one: below 0, the group's loss still falls along some direction to second
      order, however small its gradient;
    - `hessian_trace` and `group_hessian_trace`, with standard errors `..._se` over `probes` random vectors.

    Gradient descent with learning rate lr is stable where lr times the largest eigenvalue is below 2. Every observation
    starts from the vectors found at the previous one. The object keeps these vectors and nothing else, so use a
    separate object for each training run (otherwise the first observation starts from a worse guess). The vectors
    change slowly, so a few `iterations` are enough.

    What it does not mean: it is not the flatness of the function. Eigenvalues change when layers are rescaled, even if
    the network still computes the same function, and the sharpness of a minimum alone says nothing about how well it
    generalises.

    Args:
        count: Largest eigenvalues that are kept.
        iterations: Steps of Lanczos at each evaluation.
        probes: Random vectors for the trace.
        smallest: Whether the smallest eigenvalue of every group is found too.
        seed: Seed of the random draws, the same at every evaluation.
        memory: Vectors found at the previous evaluation; leave it out.
    """

    count: int = 3
    iterations: int = 16
    probes: int = 4
    smallest: bool = False
    seed: int = 0
    memory: dict[object, Tensor] = field(default_factory=dict, repr=False, compare=False)

    title: ClassVar[str] = "Largest eigenvalues and trace of the Hessian of the loss, of all points and of each group"
    takes: ClassVar[str] = "a twice differentiable model and loss of each point"
    exact: ClassVar[str] = (
        "eigenvalues up to the reported residual; the trace in expectation, and for diagonal matrices"
    )
    absent: ClassVar[str] = "loss linear in the parameters: all are zero; at interpolation all but points times outputs"

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("iterations", 2), ("probes", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"`{name}` should be at least {least}. Found {name} = {getattr(self, name)}.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        data, seen = snapshot.data, snapshot.model
        losses, parameters = point_losses(seen), trained(seen.module)
        members = [torch.as_tensor(data.of_group(group)) for group in data.groups]
        random = torch.Generator().manual_seed(self.seed)
        size = count_of(parameters)

        def times(places: Tensor, vector: Tensor) -> Tensor:
            return hessian_times(losses, parameters, places, vector, seen.chunk)

        def start(key: object) -> Tensor:
            # A little noise: the previous vector may have no component along a direction that has grown since.
            fresh = torch.randn(size, generator=random).to(parameters[0])
            kept = self.memory.get(key)
            return fresh if kept is None or len(kept) != size else kept.to(fresh) + 0.1 * fresh / fresh.norm()

        values, vectors, residuals = top_eigenpairs(
            partial(times, torch.arange(len(data))), start("all"), self.count, self.iterations
        )
        self.memory["all"] = vectors.sum(1)
        tops, bottoms = np.full((2, len(members)), np.nan)
        traces = np.full((len(members), self.probes), np.nan)
        for code, places in enumerate(members):
            if not len(places):
                continue
            own, vector, _ = top_eigenpairs(partial(times, places), start(code), 1, self.iterations)
            self.memory[code], tops[code] = vector[:, 0], float(own[0])
            if self.smallest:
                key = ("smallest", code)
                own, vector, _ = top_eigenpairs(partial(_negative, times, places), start(key), 1, self.iterations)
                self.memory[key], bottoms[code] = vector[:, 0], -float(own[0])
        for probe in range(self.probes):
            signs = (2.0 * torch.randint(2, (size,), generator=random) - 1.0).to(parameters[0])
            for code, places in enumerate(members):
                if len(places):
                    traces[code, probe] = float(signs @ times(places, signs))
        share = np.bincount(data.codes, minlength=len(members)) / len(data)
        whole = share @ np.nan_to_num(traces)
        groups = {"group": data.group_labels}
        ranks = {"rank": np.arange(1, self.count + 1)}
        null = {"better": "neither", "null": "value at initialisation"}
        reading = snapshot.reading
        bottom = "smallest eigenvalue of a group's Hessian"
        lowest = {"group_hessian_bottom": reading("group_hessian_bottom", bottoms, groups, long_name=bottom, **null)}
        return {
            **(lowest if self.smallest else {}),
            "hessian_top": reading(
                "hessian_top", values.cpu().numpy(), ranks, long_name="eigenvalue of the Hessian", **null
            ),
            "hessian_top_error": reading(
                "hessian_top_error",
                residuals.cpu().numpy(),
                ranks,
                long_name="bound on its error",
                better="lower",
                null="0",
            ),
            "group_hessian_top": reading(
                "group_hessian_top", tops, groups, long_name="largest eigenvalue of a group's Hessian", **null
            ),
            **_mean("hessian_trace", "trace of the Hessian", whole, snapshot, {}, null),
            **_mean("group_hessian_trace", "trace of a group's Hessian", traces, snapshot, groups, null),
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """A Hessian-vector product per iteration, for all points and for the groups, and one per probe."""
        return PASSES * float((3 if self.smallest else 2) * self.iterations + self.probes)


def _negative(times: Callable[[Tensor, Tensor], Tensor], places: Tensor, vector: Tensor) -> Tensor:
    return -times(places, vector)


def _mean(
    name: str,
    meaning: str,
    values: np.ndarray,
    snapshot: Snapshot,
    coords: dict[str, np.ndarray],
    attrs: dict[str, str],
) -> dict[str, xr.DataArray]:
    """The mean over probes (the last axis), and its standard error."""
    error = values.std(-1, ddof=1) / np.sqrt(values.shape[-1])
    return {
        name: snapshot.reading(name, values.mean(-1), coords, long_name=meaning, **attrs),
        f"{name}_se": snapshot.reading(f"{name}_se", error, coords, long_name=f"standard error of the {meaning}"),
    }
