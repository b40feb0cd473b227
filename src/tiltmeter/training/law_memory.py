"""LawMemory: what a law of groups remembers along a training."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.pulls import changed, gram_pulls, pulls
from tiltmeter.interventions.remembered import remembered
from tiltmeter.training.across_ranks import processes, summed

#: Up to this many points Python's own numbers are added faster than arrays: a training step leaves no code of NumPy in
#: the caches of the processor, and every call of it costs as much as a hundred additions.
FEW = 256
#: So are few groups.
GROUPS = 16


class LawMemory:
    """The state of a law beside the arrays of its buffers, which it changes in place; short-lived.

    The losses of a block of `every` steps are added up point by point, in their order, and written to their arrays when
    the state is saved (`settle`). So the sums are the same wherever a training is interrupted.
    """

    def __init__(
        self,
        law: GroupLaw,
        groups: tuple[Any, ...],
        shares: np.ndarray,
        sizes: np.ndarray,
        arrays: Mapping[str, np.ndarray],
    ) -> None:
        self._law, self._groups, self._shares, self._sizes = law, groups, shares, sizes
        self.arrays = arrays
        self.z, self.remembered, self.pull = arrays["z"], arrays["remembered"], arrays["pull"]
        self._steps, self._gram = arrays["steps"], arrays.get("gram")
        self._points, self._moves = float(law.memory), type(law).change is not GroupLaw.change
        self._few = shares.ndim == 1 and shares.size <= GROUPS and law.by == "weights" and not law.sees_gram
        self._nothing = [0.0] * shares.size
        self._sums: list[float] = arrays["sums"].ravel().tolist()
        self._counts: list[float] = arrays["counts"].ravel().tolist()
        self._done = int(self._steps)
        self._factor: Tensor | None = None
        self._written: np.ndarray | None = None
        self._made_for: Any = None

    @property
    def steps(self) -> int:
        return self._done

    def add(self, losses: Tensor, codes: Tensor) -> None:
        """Add the losses of a batch to the sums of their groups (and runs), point by point in order."""
        sums, counts = self._sums, self._counts
        if losses.ndim == 1 and len(losses) <= FEW:
            for code, loss in zip(codes.tolist(), losses.tolist(), strict=True):
                sums[code] += loss
                counts[code] += 1.0
            return
        # The sums so far come first, so that all is added in the same order.
        places, size = codes.flatten().cpu().numpy(), len(sums)
        values = np.concatenate([sums, losses.detach().flatten().double().cpu().numpy()])
        self._sums = np.bincount(np.concatenate([np.arange(size), places]), values, size).tolist()
        self._counts = (np.bincount(places, None, size) + counts).tolist()

    def settle(self) -> None:
        """Write the sums and counts to their arrays."""
        self.arrays["sums"][...] = np.reshape(self._sums, self._shares.shape)
        self.arrays["counts"][...] = np.reshape(self._counts, self._shares.shape)

    def learn(self) -> None:
        """Count the step; at the end of a block remember, change the state, say what comes."""
        law = self._law
        done = self._done = self._done + 1
        self._steps.fill(done)
        if done % law.every or self._learn_few(law, done):
            return
        known = self._known()
        seen = Seen(float(done), self._groups, self._shares, known, self._sizes, self._gram)
        z = changed(law, self.z, seen, float(law.every))
        if not law.sees_gram:
            self._say(pulls(law, z, seen))
        self._keep(z, known)

    def _learn_few(self, law: GroupLaw, done: int) -> bool:
        """The usual case without a detour: one run of a few groups, all of them seen, every number finite.

        False, and nothing is changed, where it is another case.
        """
        if not self._few or min(self._counts) == 0.0 or processes() > 1:
            return False
        points = self._points
        found = [
            old + count / (count + points) * (total / count - old)
            for old, total, count in zip(self.remembered.tolist(), self._sums, self._counts, strict=True)
        ]
        if not isfinite(sum(found)):
            return False
        known = np.array(found)
        seen = Seen(float(done), self._groups, self._shares, known, self._sizes)
        z = self.z
        if self._moves:
            step = law.change(z, seen)
            z = law.project(z + (step if law.every == 1 else float(law.every) * step))
        pull = law.pull(z, seen)
        if pull.shape != self.pull.shape or not isfinite(sum(pull.tolist())):
            return False
        self._say(pull)
        self._keep(z, known)
        return True

    def _say(self, pull: np.ndarray) -> None:
        self.pull[...] = pull
        self._made_for = None

    def _keep(self, z: np.ndarray, known: np.ndarray) -> None:
        if z is not self.z:
            self.z[...] = z
        self.remembered[...] = known
        self._sums, self._counts = self._nothing.copy(), self._nothing.copy()

    def _known(self) -> np.ndarray:
        """The losses that are remembered now."""
        sums, counts = (np.reshape(one, self._shares.shape) for one in (self._sums, self._counts))
        if processes() > 1:
            sums, counts = (summed(torch.as_tensor(one)).cpu().numpy() for one in (sums, counts))
        return remembered(self.remembered, sums, counts, self._points)

    def see(self, gram: np.ndarray, present: np.ndarray) -> None:
        """Set the pulls of the groups that are present from the inner products of their gradients."""
        assert self._gram is not None
        self._gram[...] = gram
        one = Seen(float(self._steps), self._groups, self._shares[None], self.remembered[None], self._sizes, gram[None])
        found = gram_pulls(self._law, self.z[None], one, present[None])[0]
        self.pull[...] = np.where(present, found, self.pull)

    def factor(self, like: Tensor, version: int) -> Tensor:
        """P / p of all groups (of all runs) over the points of a batch, in the precision of the losses.

        It is written anew into the same tensor when the pull has changed; what is gathered from it is a copy.
        """
        key = version, like.dtype, like.shape[-1]
        if self._made_for != key:
            if self._factor is None or self._factor.dtype != like.dtype or self._factor.device != like.device:
                self._factor = torch.empty(self.pull.size, dtype=like.dtype, device=like.device)
                plain = like.is_cpu and like.dtype in (torch.float32, torch.float64)
                self._written = self._factor.numpy().reshape(self.pull.shape) if plain else None
            if self._written is not None:
                np.divide(self.pull, self._shares, out=self._written)
                self._written *= 1.0 / like.shape[-1]
            else:
                self._factor.copy_(torch.from_numpy((self.pull / self._shares).ravel()))
                self._factor.mul_(1.0 / like.shape[-1])
            self._made_for = key
        assert self._factor is not None
        return self._factor
