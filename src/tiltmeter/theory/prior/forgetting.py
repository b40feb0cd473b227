"""forgetting: how well one group is still known after a long phase on the other alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tiltmeter.notebook_text import NotebookText
from tiltmeter.problem.mixture import Mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.theory.prior.centred_pair import G, centred_pair


@dataclass(frozen=True)
class Forgetting(NotebookText):
    """Loss and error of `group` after a long phase of `after` alone; an untrained student has loss 1/2.

    `critical_overlap` is the overlap of the teachers below which the loss is worse than that of an untrained student.
    """

    group: Hashable
    after: Hashable
    loss: float
    error: float
    overlap: float
    critical_overlap: float

    @property
    def worse_than_untrained(self) -> bool:
        """Whether the loss exceeds that of a student that has learnt nothing."""
        return self.overlap < self.critical_overlap

    def __str__(self) -> str:
        verdict = "worse than never learnt" if self.worse_than_untrained else "still better than never learnt"
        always = " at every overlap" if self.critical_overlap >= 1.0 else ""
        return (
            f"After a long phase of {self.after} alone the loss of {self.group} is {self.loss:.4f}, {verdict}{always} "
            f"(critical overlap {self.critical_overlap:.4g}, here {self.overlap:.4g}); its error is {self.error:.4f}."
        )


def forgetting(problem: Mixture, sgd: SGD, group: Hashable, after: Hashable) -> Forgetting:
    """Return loss and error of `group` once `after` has been learnt alone to the end, whatever was learnt before.

    >>> from tiltmeter import SGD, teacher_mixture
    >>> problem = teacher_mixture(rho=0.5, variance=(2.0, 0.5), overlap=0.9)
    >>> print(forgetting(problem, SGD(lr=0.001), "+", after="-"))
    After a long phase of - alone the loss of + is 0.6275, worse than never learnt at every overlap
    (critical overlap 1, here 0.9); its error is 0.1436.

    Loss and error may disagree: the loss also depends on the length of the student, the error only on its angle.
    """
    pair = centred_pair(problem, sgd, "forgetting")
    for name in (group, after):
        if name not in pair.groups:
            raise KeyError(f"No group {name!r}. There are: {', '.join(map(repr, pair.groups))}.")
    if group == after:
        raise ValueError(f"`group` and `after` should differ. Found {group!r} for both.")
    h, k = pair.groups.index(group), pair.groups.index(after)
    x = pair.lr * float(pair.D[k])
    if not x < 2.0:
        raise ValueError(f"`lr` should lie below {2.0 / pair.D[k]:.6g}, the limit of {after} alone. Found {pair.lr:g}.")
    r, noise = float(np.sqrt(pair.D[h] / pair.D[k])), x / (2.0 - x)
    squared = G**2 + (1.0 - G**2) * noise
    return Forgetting(
        group=group,
        after=after,
        loss=0.5 * (1.0 + r**2 * squared - 2.0 * G**2 * pair.T * r),
        error=float(np.arccos(np.clip(pair.T * G / np.sqrt(squared), -1.0, 1.0)) / np.pi),
        overlap=pair.T,
        critical_overlap=0.5 * r * (1.0 + (np.pi / 2.0 - 1.0) * noise),
    )
