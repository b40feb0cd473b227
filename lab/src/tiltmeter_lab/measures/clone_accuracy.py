"""CloneAccuracy: accuracy on data that share only low-order statistics with the real data (Belrose et al., 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter_lab.data.clones import (
    ClassCovariance,
    Clone,
    GaussianTransport,
    IndependentMarginals,
    Isotropic,
    QuantileEdit,
    SharedCovariance,
)
from tiltmeter_lab.measures.shared.exchanged_features import chance

#: Name of the real points, with which every clone is compared.
REAL = "real"
#: From fewer to more statistics of the data; edits last.
CLONES: Mapping[str, Clone] = {
    "isotropic": Isotropic(),
    "marginals": IndependentMarginals(),
    "shared covariance": SharedCovariance(),
    "class covariance": ClassCovariance(),
    "transport edit": GaussianTransport(),
    "quantile edit": QuantileEdit(),
}


@dataclass(frozen=True)
class CloneAccuracy:
    """`clone_accuracy` and `clone_loss` on the real points and on clones and edits of them, dimension `clone`.

    >>> import tiltmeter_lab as lab
    >>> import numpy as np, tiltmeter as tm, torch
    >>> x = np.random.default_rng(0).uniform(size=(120, 3))
    >>> data = tm.GroupedData(x, [0, 1] * 60, "label")
    >>> found = lab.measure(CloneAccuracy(), torch.nn.Linear(3, 2), data)
    >>> found["clone_accuracy"].clone.values[:3].tolist()
    ['real', 'isotropic', 'marginals']

    `clones` maps names to clones (see `data.synthetic.clones`). They are fitted to `fit`, by default the held-out
    points, and drawn with `seed`, so they are the same at every observation. A clone has the labels of the points. An
    edit has the label of the class that it was moved to, so its accuracy is the share that is assigned to the *target*
    class.

    A model that does as well on a clone as on the real points has used only the statistics that they share. If the loss
    on a clone falls and then rises, the model has moved on to other statistics.

    What it does not mean: it does *not* say that the model would *train* as well on the clone. With few points per
    class the statistics themselves are noisy, and clones of held-out points differ from clones of training points.

    Args:
        clones: Clones and edits by name, see `tm.data.synthetic`.
        fit: Points to which clones are fitted; None: the held-out points.
        seed: Seed of the clones, the same at every evaluation.
    """

    title: ClassVar[str] = "accuracy and loss on data that share only low-order statistics with the real data"
    takes: ClassVar[str] = "a model that decides, real inputs in classes (not tokens); several points of every class"
    exact: ClassVar[str] = "moments of the clones; transported points have the mean and covariance of their target"
    absent: ClassVar[str] = "a linear model may never distinguish a Gaussian clone from the real points"
    weighs: ClassVar[bool] = True

    clones: Mapping[str, Clone] = field(default_factory=lambda: dict(CLONES))
    fit: GroupedData | None = None
    seed: int = 0
    # Drawn once for the held-out points; drawing again would give the same numbers.
    _drawn: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.clones, Mapping):
            raise TypeError(f"`clones` should map names to clones. Found {type(self.clones).__name__}.")
        if REAL in self.clones:
            raise ValueError(f"`clones` should not use the name {REAL!r}, which is the name of the real points.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if not snapshot.task.decides:
            raise ValueError("A regression makes no decisions: clones need classes.")
        found = [self._judged(snapshot, data) for data in self.sets(snapshot.data).values()]
        coords = {"clone": np.array([REAL, *self.clones])}
        readings = {
            "clone_accuracy": ("share of right decisions on clones", "higher"),
            "clone_accuracy_null": ("accuracy of random decisions with the same frequencies", "neither"),
            "clone_loss": ("loss on clones", "lower"),
        }
        attrs = {"null": f'the value of clone "{REAL}"'}
        return {
            name: snapshot.reading(
                name, np.array([case[i] for case in found]), coords, long_name=meaning, better=better, **attrs
            )
            for i, (name, (meaning, better)) in enumerate(readings.items())
        }

    def passes(self, snapshot: Snapshot) -> float:  # noqa: ARG002
        """One pass over the real points and one over each clone."""
        return 1.0 + len(self.clones)

    def sets(self, data: GroupedData) -> dict[str, GroupedData]:
        """The real points and their clones by name."""
        if self._drawn.get("of") is not data:
            made = {name: clone(data, self.seed, self.fit) for name, clone in self.clones.items()}
            self._drawn.update(of=data, sets={REAL: data, **made})
        return dict(self._drawn["sets"])

    def _judged(self, snapshot: Snapshot, data: GroupedData) -> tuple[float, float, float]:
        seen = snapshot.model
        score = seen.scores(data.x)
        mass = np.ones(len(data)) if data.weights is None else data.weights
        decision = seen.decide(score)
        y = torch.as_tensor(data.y).to(seen.y.dtype)
        losses = seen.losses(score if snapshot.task.outputs > 1 else score[:, 0], y).double().cpu().numpy()
        right = float(np.average(decision == data.y, weights=mass))
        return right, chance(data.y, decision, mass), float(np.average(losses, weights=mass))
