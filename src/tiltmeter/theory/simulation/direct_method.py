"""Direct: the plain run with all d coordinates, a second route and the only one for coordinate-wise optimisers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from tiltmeter.record.labelled import JSON
from tiltmeter.theory.problem.optimisers import Adam, AdamW, SignSGD
from tiltmeter.theory.problem.students import Identity, Network
from tiltmeter.theory.simulation.linear_chain import GroupPulls, SteeredRun
from tiltmeter.theory.simulation.run import Observation, Run, generators
from tiltmeter.theory.simulation.setting import Setting, random_scale, start_coordinates
from tiltmeter.threads import in_blocks


class DirectRun:
    """Per seed: an orthonormal frame of means and teachers (rank x d), weights (K x d), moments, scalars, data."""

    def __init__(self, setting: Setting, seeds: tuple[int, ...]) -> None:
        from tiltmeter.theory.simulation.compiled_direct import ADAM, ADAMW, SGD, SIGN
        from tiltmeter.theory.simulation.compiled_draws import number_of, place

        self._setting = setting
        self._generators = generators(seeds, route=1)
        optimiser, student, count = setting.optimiser, setting.student, len(seeds)
        kinds = {SignSGD: SIGN, Adam: ADAM, AdamW: ADAMW}
        self._kind = kinds.get(type(optimiser), SGD)
        self._activation = number_of(student.activation if isinstance(student, Network) else Identity())
        self._learn_second = isinstance(student, Network) and student.train_second_layer
        units, d = setting.units, setting.d
        size = 0 if setting.data is None else setting.data.size(d)
        if size and setting.sgd.curriculum:
            raise ValueError(
                "A repeated data set keeps its proportions: schedules of `proportions` need fresh examples."
            )
        moving = setting.sgd.momentum > 0 or self._kind in (ADAM, ADAMW)
        self._frame = np.empty((count, setting.rank, d))
        self._w = np.zeros((count, units, d))
        self._first = np.zeros((count, units, d) if moving else (count, 0, 0))
        self._second = np.zeros((count, units, d) if self._kind in (ADAM, ADAMW) else (count, 0, 0))
        self._inputs = np.empty((count, size, d))
        self._groups, self._labels = np.empty((count, size), np.int64), np.empty((count, size), np.int64)
        self._order = np.tile(np.arange(size), (count, 1))
        self._scalars = np.zeros((count, units + 1))
        self._moments = np.zeros((count, 2, units + 1))
        self.stopped = np.full(count, -1, dtype=np.int64)
        self.pulls = GroupPulls.plain(setting, count)
        visible, hidden, bias = start_coordinates(setting)
        self._scalars[:] = np.append(setting.second_layer, bias)
        apart = units if (hidden != 0.0).any() else 0
        if d < setting.rank + apart:
            raise ValueError(f"`d` should be at least {setting.rank + apart} for this start. Found d = {d}.")
        scale = random_scale(setting) / np.sqrt(d)
        data = setting.data
        flips = np.array([0.0] * len(setting.means) if data is None else data.shares(setting.par.groups))
        self._replace = data is not None and data.replace

        def work(low: int, high: int) -> None:
            place(
                low, high, self._generators, self._w, self._frame, visible, hidden, scale, setting.cumulative(0, 1),
                setting.means, setting.teachers, setting.label_bias, setting.deviation, self._inputs, self._groups,
                self._labels, flips,
            )  # fmt: skip

        in_blocks(work, count, least=1)

    @property
    def cost(self) -> float:
        return 100.0 + 10.0 * self._setting.d * self._setting.batch * (1 + 0.3 * self._setting.units)

    def advance(self, first: int, stop: int, rates: np.ndarray, weights: np.ndarray, threads: int | None) -> None:
        from tiltmeter.theory.simulation.compiled_direct import advance_direct

        chosen, sgd, optimiser, now = self._setting, self._setting.sgd, self._setting.optimiser, self.pulls
        clip = inf if sgd.clip is None else float(sgd.clip)
        betas, epsilon = (optimiser.betas, optimiser.epsilon) if isinstance(optimiser, Adam) else ((0.0, 0.0), 0.0)
        numbers = (
            float(sgd.momentum), float(sgd.nesterov), float(sgd.weight_decay), clip, *map(float, betas), float(epsilon)  # type: ignore[arg-type]
        )  # fmt: skip

        drawn = now.drawn(chosen, first, stop)

        def work(low: int, high: int) -> None:
            advance_direct(
                low, high, self._generators, self._w, self._scalars, self._first, self._second, self._moments,
                self.stopped, first, stop - first, rates, weights, now.factors, drawn, now.losses, now.counts,
                chosen.means, chosen.teachers, self._frame, chosen.label_bias, chosen.deviation, self._inputs,
                self._groups, self._labels, self._order, self._replace, numbers, self._kind, chosen.batch,
                self._activation, self._learn_second, sgd.train_bias,
            )  # fmt: skip

        in_blocks(work, len(self._w), threads, least=1)

    @property
    def sizes(self) -> np.ndarray:
        """How many samples of every group the data set of each seed has."""
        return np.asarray((self._groups[:, :, None] == np.arange(len(self._setting.means))).sum(1))

    def evaluate(self) -> Observation:
        units = self._setting.units
        visible = np.einsum("skd,sad->ska", self._w, self._frame)
        M = np.einsum("ska,ga->sgk", visible, self._setting.means)
        R = np.einsum("ska,ga->sgk", visible, self._setting.teachers)
        Q = self._w @ self._w.transpose(0, 2, 1)
        trained = self._trained_on() if self._inputs.shape[1] else (None, None)
        return Observation(M, R, Q, self._scalars[:, :units].copy(), self._scalars[:, units].copy(), *trained)

    def _trained_on(self) -> tuple[np.ndarray, np.ndarray]:
        """Return loss and error per group on the training samples; NaN for a group without any."""
        student, groups = self._setting.student, len(self._setting.means)
        loss, error = np.full((len(self._w), groups), np.nan), np.full((len(self._w), groups), np.nan)
        activation = student.activation if isinstance(student, Network) else Identity()
        for i, inputs in enumerate(self._inputs):
            score = activation(inputs @ self._w[i].T) @ self._scalars[i, :-1] + self._scalars[i, -1]
            label = 2.0 * self._labels[i] - 1.0
            for g in range(groups):
                mine = self._groups[i] == g
                if mine.any():
                    loss[i, g] = 0.5 * np.mean((score[mine] - label[mine]) ** 2)
                    error[i, g] = np.mean((score[mine] > 0) != (label[mine] > 0))
        return loss, error


@dataclass(frozen=True)
class Direct:
    """Simulates all d coordinates, O(d) per step. Every seed has its own random directions of means and teachers.

    >>> from tiltmeter import simulate, teacher_mixture

    >>> from tiltmeter.theory import optimisers
    >>> simulate(teacher_mixture(), optimisers.Adam(lr=0.1), [1.0], d=50, method=Direct())["loss"].sizes["group"]
    2

    Args:
        threads: Number of threads, on which results do not depend; None: all cores.
        progress: Whether work of more than a few seconds shows its progress on stderr.
    """

    threads: int | None = None
    progress: bool = True

    def begin(self, setting: Setting, seeds: tuple[int, ...]) -> Run:
        if setting.d < setting.rank:
            raise ValueError(
                f"`d` should be at least {setting.rank}: means and teachers span {setting.rank} dimensions. "
                f"Found d = {setting.d}."
            )
        law, repeated = setting.law, setting.data is not None
        if law is not None and law.sees_gram:
            raise ValueError(
                f"`Direct` does not see the gradients that {type(law).__name__} needs. Use method=Chain()."
            )
        if law is not None and law.by == "draws" and repeated:
            raise ValueError(
                f"A data set that is used epoch by epoch leaves {type(law).__name__} nothing to draw: "
                'use by="weights", or fresh data.'
            )
        run = DirectRun(setting, seeds)
        return run if law is None else SteeredRun(run, run.pulls, setting, law, run.sizes if repeated else None)

    def to_json(self) -> dict[str, JSON]:
        return {"method": "direct"}
