"""LawMemory: what a law of groups remembers along a training."""

from __future__ import annotations

from collections.abc import Mapping
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


class LawMemory:
    """The state of a law beside the arrays of its buffers, which it changes in place; short-lived.

    The losses of a block of `every` steps are noted, and added up point by point, in their order, when the block ends
    or the state is saved (`settle`). So the sums are the same wherever a training is interrupted.
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
        self._single = shares.ndim == 1
        self._sums: list[float] = arrays["sums"].ravel().tolist()
        self._counts: list[float] = arrays["counts"].ravel().tolist()
        self._noted: list[Tensor] = []
        self._codes: list[Tensor] = []
        self._done = int(self._steps)
        self._factor: Tensor | None = None
        self._written: np.ndarray | None = None
        self._made_for: Any = None

    @property
    def steps(self) -> int:
        return self._done

    def add(self, losses: Tensor, codes: Tensor) -> None:
        """Note the losses of a batch and the codes of their groups (and runs), which the caller may overwrite later."""
        self._noted.append(losses)
        self._codes.append(codes if self._law.every == 1 else codes.clone())

    def _add_up(self) -> None:
        """Add what was noted to the sums, point by point in order."""
        if not self._noted:
            return
        losses, codes = _in_a_row(self._noted), _in_a_row(self._codes)
        sums, counts = self._sums, self._counts
        if len(codes) <= FEW:
            for code, loss in zip(codes.tolist(), losses.tolist(), strict=True):
                sums[code] += loss
                counts[code] += 1.0
        else:  # the sums so far come first, so that all is added in the same order
            places, size = codes.cpu().numpy(), len(sums)
            values = np.concatenate([sums, losses.double().cpu().numpy()])
            self._sums = np.bincount(np.concatenate([np.arange(size), places]), values, size).tolist()
            self._counts = (np.bincount(places, None, size) + counts).tolist()
        self._noted, self._codes = [], []

    def settle(self) -> None:
        """Write the sums and counts to their arrays."""
        self._add_up()
        self.arrays["sums"][...] = np.reshape(self._sums, self._shares.shape)
        self.arrays["counts"][...] = np.reshape(self._counts, self._shares.shape)

    def learn(self) -> None:
        """Count the step; at the end of a block remember, change the state, say what comes."""
        law = self._law
        done = self._done = self._done + 1
        self._steps.fill(done)
        if done % law.every:
            return
        known = self._known()
        seen = Seen(float(done), self._groups, self._shares, known, self._sizes, self._gram)
        z = changed(law, self.z, seen, float(law.every))
        if z is not self.z:
            self.z[...] = z
        self.remembered[...] = known
        self._sums, self._counts = [0.0] * len(self._sums), [0.0] * len(self._counts)
        if not law.sees_gram:
            self.pull[...] = pulls(law, z, seen)
            self._made_for = None

    def _known(self) -> np.ndarray:
        """The losses that are remembered now."""
        self._add_up()
        points, several = float(self._law.memory), processes() > 1
        if self._single and not several and min(self._counts) > 0.0:
            before = self.remembered.tolist()
            found = [
                total / count if old != old else old + count / (count + points) * (total / count - old)
                for old, total, count in zip(before, self._sums, self._counts, strict=True)
            ]
            return np.array(found)
        sums, counts = (np.reshape(one, self._shares.shape) for one in (self._sums, self._counts))
        if several:
            sums, counts = (summed(torch.as_tensor(one)).cpu().numpy() for one in (sums, counts))
        return remembered(self.remembered, sums, counts, points)

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


def _in_a_row(parts: list[Tensor]) -> Tensor:
    """The numbers of several tensors one after the other."""
    if len(parts) == 1 and parts[0].ndim == 1:
        return parts[0]
    return torch.cat([part.flatten() for part in parts])
