"""GramChain: the linear student under an intervention that sees the gradients of every batch.

Outside the span of means, teachers and student the mean gradients of G groups are independent Gaussian vectors of
variances v_g = sum (miss sd)^2 / n_g^2, so only their Bartlett factor (G x G) is needed: their Gram matrix is sqrt(v)
Wishart(d - rank - 1) sqrt(v). All seeds are advanced together; each draws from its own random stream, in blocks.
"""

from __future__ import annotations

import numpy as np

from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, changed, gram_pulls
from tiltmeter.theory.simulation.run import HUGE, Observation, generators
from tiltmeter.theory.simulation.setting import Setting, random_scale, start_coordinates

#: Random numbers are drawn for this many steps at once.
BLOCK = 64


class GramChain:
    """State per seed: `rank` coordinates in the span of means and teachers, the length of the rest, the bias."""

    def __init__(self, setting: Setting, seeds: tuple[int, ...], law: GroupIntervention) -> None:
        if law.every != 1:
            raise ValueError(
                f"`simulate` lets {type(law).__name__} act at every step. Found every = {law.every}: `train` can skip."
            )
        self._setting, self._law = setting, law
        self._generators = list(generators(seeds, route=0))
        rank, d, count, number = setting.rank, setting.d, len(seeds), len(setting.shares)
        need = rank + 1 + number
        if d < need:
            raise ValueError(f"`d` should be at least {need} for gradients of {number} groups. Found d = {d}.")
        visible, hidden, bias = start_coordinates(setting)
        self._w = np.tile(visible[0], (count, 1))
        self._rest, self._bias = np.full(count, abs(hidden[0, 0])), np.full(count, float(bias))
        scale = random_scale(setting) / np.sqrt(d)
        if scale > 0:
            for i, rng in enumerate(self._generators):
                self._w[i] = scale * rng.standard_normal(rank)
                self._rest[i] = scale * np.sqrt(rng.chisquare(d - rank))
        self.stopped = np.full(count, -1, dtype=np.int64)
        self._shares = np.tile(setting.shares, (count, 1))
        self._losses = np.full((count, number), np.nan)
        self._pull = self._shares.copy()
        self._z = law.start(self._shares)
        self._drawn: tuple[np.ndarray, ...] = ()

    @property
    def cost(self) -> float:
        return 2e4

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:  # noqa: ARG002
        for step in range(first, stop):
            row = step - first
            rate = rates[row] if len(rates) > 1 else rates[0]
            table = weights[row] if len(weights) > 1 else weights[0]
            if step % BLOCK == 0 or not self._drawn:
                self._drawn = self._draw()
            self._step(step, float(rate), table, *(part[:, step % BLOCK] for part in self._drawn))

    def _draw(self) -> tuple[np.ndarray, ...]:
        """Draw uniform numbers (groups), normal numbers (points) and Bartlett factors for a block of steps."""
        chosen, number = self._setting, len(self._setting.shares)
        freedom = chosen.d - chosen.rank - 1 - np.arange(number)
        shape = BLOCK, chosen.batch
        parts = [
            (
                rng.random(shape),
                rng.standard_normal((*shape, chosen.rank + 1)),
                np.tril(rng.standard_normal((BLOCK, number, number)), -1)
                + np.sqrt(rng.chisquare(freedom, (BLOCK, number)))[:, :, None] * np.eye(number),
            )
            for rng in self._generators
        ]
        return tuple(np.stack(column) for column in zip(*parts, strict=True))

    def _step(
        self, step: int, rate: float, table: np.ndarray, u: np.ndarray, normal: np.ndarray, factor: np.ndarray
    ) -> None:
        from tiltmeter.theory.simulation.compiled_steered import remember

        chosen, sgd, number = self._setting, self._setting.sgd, len(self._setting.shares)
        group = np.minimum((u[:, :, None] >= chosen.cumulative(0, 1)[0]).sum(2), number - 1)
        sd = chosen.deviation[group]
        x = chosen.means[group] + sd[:, :, None] * normal[:, :, :-1]
        z = sd * normal[:, :, -1]
        positive = (chosen.teachers[group] * x).sum(2) + chosen.label_bias[group] > 0.0
        off = (
            (x @ self._w[:, :, None])[:, :, 0] + self._rest[:, None] * z + self._bias[:, None] - (2.0 * positive - 1.0)
        )
        miss = off * table[group, positive.astype(int)]
        mine = (group[:, :, None] == np.arange(number)).astype(float)  # (S, B, G)
        counts = mine.sum(1)
        many = np.maximum(counts, 1.0)
        part = (mine * miss[:, :, None]).transpose(0, 2, 1)  # (S, G, B)
        inside = part @ np.concatenate([x, z[:, :, None], np.ones_like(z)[:, :, None]], axis=2) / many[:, :, None]
        if not sgd.train_bias:
            inside[:, :, -1] = 0.0
        outside = np.sqrt(part**2 @ (sd**2)[:, :, None])[:, :, 0] / many
        outside = outside[:, :, None] * factor
        gram = (inside @ inside.transpose(0, 2, 1) + outside @ outside.transpose(0, 2, 1)) / chosen.d
        seen = Seen(step / chosen.d, chosen.par.groups, self._shares, self._losses, gram=gram)
        alive = (self.stopped < 0) & np.isfinite(gram).all((1, 2))
        P = np.where(alive[:, None], 0.0, self._shares)
        P[alive] = gram_pulls(
            self._law,
            self._z[alive],
            Seen(seen.time, seen.groups, self._shares[alive], self._losses[alive], gram=gram[alive]),
            counts[alive] > 0,
        )
        self._pull = P
        pull, beyond = (P[:, None] @ inside)[:, 0], (P[:, None] @ outside)[:, 0]
        keep = 1.0 - rate * float(sgd.weight_decay)  # type: ignore[arg-type]
        with np.errstate(over="ignore", invalid="ignore"):
            w = keep * self._w - rate * pull[:, : chosen.rank]
            rest = keep * self._rest - rate * pull[:, chosen.rank]
            length = np.sqrt(rest**2 + rate**2 * (beyond**2).sum(1))
        gone = (self.stopped < 0) & ~(length < np.sqrt(HUGE))
        self.stopped[gone] = step + 1
        move = self.stopped < 0
        self._w[move], self._rest[move] = w[move], length[move]
        self._bias[move] -= rate * pull[move, -1]
        remember(self._losses, (mine * (0.5 * off**2)[:, :, None]).sum(1), counts, float(self._law.memory))
        self._z = changed(self._law, self._z, seen, 1.0 / chosen.d)

    def evaluate(self) -> Observation:
        M, R = self._w @ self._setting.means.T, self._w @ self._setting.teachers.T
        Q = (self._w**2).sum(1) + self._rest**2
        found = Observation(M[:, :, None], R[:, :, None], Q[:, None, None], np.ones((len(M), 1)), self._bias.copy())
        return found.with_pull(self._pull)
