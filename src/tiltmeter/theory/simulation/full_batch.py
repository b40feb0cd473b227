"""Flow and Descent at finite d: the second route to the theory of a fixed training set."""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.simulation.run import HUGE, Observation
from tiltmeter.theory.simulation.setting import Setting, StepSettings, random_scale, start_coordinates
from tiltmeter.threads import in_blocks


def full_batch_evaluations(
    setting: Setting, training: Flow | Descent, seeds: tuple[int, ...], times: np.ndarray, threads: int | None
) -> Observation:
    """Return what all seeds show at all times (for Descent: steps), each with its own training set."""
    groups, count, evaluations = len(setting.means), len(seeds), len(times)
    per_group = (count, evaluations, groups)
    M, R, loss, error = (np.full(per_group, np.nan) for _ in range(4))
    Q, bias = np.full((count, evaluations), np.nan), np.full((count, evaluations), np.nan)

    def work(low: int, high: int) -> None:
        for i in range(low, high):
            one = TrainingRun(setting, seeds[i])
            w = one.flow(training, times) if isinstance(training, Flow) else one.descent(training, times)
            visible, weights = w[:, : setting.rank], w[:, : setting.d]
            M[i], R[i] = visible @ setting.means.T, visible @ setting.teachers.T
            Q[i], bias[i] = (weights**2).sum(1), w[:, -1] if one.biased else 0.0
            loss[i], error[i] = one.trained_on(w, groups)

    in_blocks(work, count, threads, least=1)
    second = np.ones((count, evaluations, 1))
    return Observation(M[..., None], R[..., None], Q[..., None, None], second, bias, loss, error)


class TrainingRun:
    """Full-batch training on one data set in d dimensions, with means and teachers along the first axes."""

    def __init__(self, setting: Setting, seed: int) -> None:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0, spawn_key=(seed, 2))))
        data, d, rank = setting.data, setting.d, setting.rank
        assert data is not None
        n = data.size(d)
        self._group = rng.choice(len(setting.shares), size=n, p=setting.shares / setting.shares.sum())
        x = rng.standard_normal((n, d)) * setting.deviation[self._group, None]
        x[:, :rank] += setting.means[self._group]
        field = (x[:, :rank] * setting.teachers[self._group]).sum(1) + setting.label_bias[self._group]
        flips = np.array(data.shares(setting.par.groups))
        wrong = rng.random(n) < flips[self._group]
        self._y = np.where((field > 0) != wrong, 1.0, -1.0)
        self.biased = setting.sgd.train_bias
        self._x = np.column_stack([x, np.ones(n)]) if self.biased else x
        table = StepSettings(setting.sgd, setting.par.groups, d).weights(0, 1)[0]
        self._weight = table[self._group, (self._y > 0).astype(int)] / n
        self._decay = np.full(self._x.shape[1], float(setting.sgd.weight_decay))  # type: ignore[arg-type]
        self._start = np.zeros(self._x.shape[1])
        visible, hidden, bias = start_coordinates(setting)
        scale = random_scale(setting)
        if scale > 0.0:
            self._start[:d] = scale / np.sqrt(d) * rng.standard_normal(d)
        else:
            apart = rng.standard_normal(d - rank)
            self._start[:rank] = visible[0]
            self._start[rank:d] = np.linalg.norm(hidden) * apart / np.linalg.norm(apart)
        if self.biased:
            self._decay[-1] = 0.0
            self._start[-1] = bias

    def flow(self, training: Flow, times: np.ndarray) -> np.ndarray:
        """Return the weights at all times, exactly, because the equation is linear."""
        H = (self._x * self._weight[:, None]).T @ self._x
        H[np.diag_indices_from(H)] += self._decay
        values, vectors = np.linalg.eigh(H)
        values = np.maximum(values, 0.0)
        pull = vectors.T @ (self._x.T @ (self._weight * self._y))
        own = vectors.T @ self._start
        out = np.empty((len(times), len(own)))
        for i, t in enumerate(float(training.lr) * times):  # type: ignore[arg-type]
            left = np.exp(-t * values)
            grown = np.where(values > 0.0, -np.expm1(-t * values) / np.where(values > 0.0, values, 1.0), t)
            out[i] = vectors @ (grown * pull + left * own)
        return out

    def descent(self, training: Descent, steps: np.ndarray) -> np.ndarray:
        """Return the weights after these numbers of steps; NaN after divergence."""
        w, before = self._start.copy(), self._start.copy()
        out = np.full((len(steps), len(w)), np.nan)
        done = 0
        for i, stop in enumerate(steps):
            while done < stop:
                slope = (self._weight * (self._x @ w - self._y)) @ self._x + self._decay * w
                w, before = w - float(training.lr) * slope + training.momentum * (w - before), w  # type: ignore[arg-type]
                done += 1
                if not w @ w < HUGE:
                    return out
            out[i] = w
        return out

    def trained_on(self, w: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
        """Return loss and error per group on the training examples, (T, G); NaN for a group without any."""
        score = self._x @ w.T
        missed, wrong = 0.5 * (score - self._y[:, None]) ** 2, (score > 0) != (self._y > 0)[:, None]
        mine = np.stack([self._group == g for g in range(groups)]).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            size = mine.sum(1)
            return (mine @ missed / size[:, None]).T, (
                mine @ np.where(np.isnan(score), np.nan, wrong) / size[:, None]
            ).T
