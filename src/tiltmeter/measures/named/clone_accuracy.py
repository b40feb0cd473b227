"""CloneAccuracy: how a model does on data that share only low-order statistics with the real (Belrose et al., 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from tiltmeter.data.grouped import GroupedData
from tiltmeter.data.synthetic.clones import (
    ClassCovariance,
    Clone,
    GaussianTransport,
    IndependentMarginals,
    Isotropic,
    QuantileEdit,
    SharedCovariance,
)
from tiltmeter.measures.shared.exchanged_features import chance
from tiltmeter.measures.snapshot import Snapshot

#: Name of the points as they are, the level that every clone is compared with.
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

    `clones` maps names to clones (see `data.synthetic.clones`), fitted to `fit` or else to the points looked at, drawn
    with `seed` and the same at every look. A clone has the labels of the points; an edit carries the label of the class
    that it was moved to, so accuracy there is the share called by the *target* class.

    A model that does as well on a clone as on the real points has used nothing yet beyond the statistics that they
    share; a loss that falls and then rises says that it went on to others. It does *not* say that the model would
    *train* as well on the clone. With few points per class the statistics themselves are noise, and clones of points
    that the model was not trained on differ from clones of those that it was.
    """

    title: ClassVar[str] = "accuracy and loss on data with only the low-order statistics of the real"
    takes: ClassVar[str] = "a model that decides, real inputs in classes (not tokens); several points of every class"
    exact: ClassVar[str] = "moments of the clones; transported points have the mean and covariance of their target"
    absent: ClassVar[str] = "a linear model may never tell a Gaussian clone from the real points"
    weighs: ClassVar[bool] = True

    clones: Mapping[str, Clone] = field(default_factory=lambda: dict(CLONES))
    fit: GroupedData | None = None
    seed: int = 0
    # Drawn once for the points looked at; the same numbers would come every time.
    _drawn: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.clones, Mapping):
            raise TypeError(f"`clones` should map names to clones. Found {type(self.clones).__name__}.")
        if REAL in self.clones:
            raise ValueError(f"`clones` should not use the name {REAL!r}, which is that of the points themselves.")

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:
        if not snapshot.task.decides:
            raise ValueError("A model of a regression decides nothing: clones need classes.")
        found = [self._judged(snapshot, data) for data in self.sets(snapshot.data).values()]
        coords = {"clone": np.array([REAL, *self.clones])}
        readings = {
            "clone_accuracy": ("share of right decisions on clones", "higher"),
            "clone_accuracy_null": ("accuracy of decisions that know nothing of the label", "neither"),
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
        """One pass over the points and each clone."""
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
