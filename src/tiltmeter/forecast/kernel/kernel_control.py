"""KernelControl: forecast group losses as a function of the pulls in every piece of training, with exact gradients."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.kernel.group_losses import group_losses
from tiltmeter.forecast.kernel.question import Question
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.forecast.kernel.targets import bend, slope, targets
from tiltmeter.losses import CrossEntropy, Logistic, Square

#: Features that are followed, the longest first: a search makes hundreds of forecasts.
MOST = 100
#: Steps of training are joined while they stay below this part of the fastest time scale.
LONGEST = 0.5


@dataclass(frozen=True, eq=False)
class KernelControl:
    """The linearised network in its leading features; `lengths` are learning rates times steps, joined.

    `piece` says in which piece of pulls each of them lies, `ends` after which of them the looks come.
    """

    rows: np.ndarray
    mass: np.ndarray
    codes: np.ndarray
    start: np.ndarray
    goal: np.ndarray
    loss: Any
    look_rows: np.ndarray
    look_start: np.ndarray
    look_goal: np.ndarray
    look: GroupedData
    shares: np.ndarray
    lengths: np.ndarray
    piece: np.ndarray
    ends: np.ndarray
    pieces: int

    @classmethod
    def of(cls, tangent: Tangent, question: Question, looks: np.ndarray, starts: np.ndarray) -> KernelControl:
        loss, sgd = question.loss, question.sgd
        features = tangent.features(loss)
        rows, look_rows = features.sample[:, :MOST], features.look[:, :MOST]
        share = tangent.shared(question)
        codes = np.repeat(tangent.sample.codes, len(rows) // len(tangent.sample))
        corners = np.unique(np.concatenate([[0], looks, starts])).astype(int)
        travelled = sgd.travelled(corners)
        fastest = bend(loss) * float(np.linalg.eigvalsh(rows.T @ (share[:, None] * rows))[-1])
        boost = 1.0 / float(tangent.shares[tangent.shares > 0].min())
        lengths: list[float] = []
        where: list[int] = []
        ends = {0: 0}
        for (a, b), (s, t) in zip(pairwise(corners.tolist()), pairwise(travelled.tolist()), strict=True):
            count = max(1, min(b - a, int(np.ceil((t - s) * fastest * boost / LONGEST))))
            lengths += [(t - s) / count] * count
            where += [int(np.searchsorted(starts, a, side="right")) - 1] * count
            ends[b] = len(lengths)
        return cls(
            rows,
            share / np.where(tangent.shares > 0, tangent.shares, 1.0)[codes],
            codes,
            tangent.flat(tangent.start_sample),
            targets(tangent.sample.y, tangent.columns, loss, tangent.positive),
            loss,
            look_rows,
            tangent.flat(tangent.start_look),
            targets(tangent.look.y, tangent.columns, loss, tangent.positive),
            tangent.look,
            tangent.shares,
            np.asarray(lengths),
            np.asarray(where),
            np.asarray([ends[int(step)] for step in looks]),
            len(starts),
        )

    def losses(self, P: np.ndarray) -> tuple[np.ndarray, Any]:
        """Group losses (looks, G) and, for the way back, outputs and slopes of the points at every length."""
        state = np.zeros((self.rows.shape[1], self.start.shape[1]))
        states, outputs, slopes = [state], [], []
        weights = self.mass[:, None] * P.T[self.codes]
        across = np.ascontiguousarray(self.rows.T)
        for length, piece in zip(self.lengths.tolist(), self.piece.tolist(), strict=True):
            out = self.start + self.rows @ state
            steep = self._flat(slope(self.loss, out.reshape(self.goal.shape), self.goal))
            state = state - length * (across @ (weights[:, piece, None] * steep))
            outputs.append(out)
            slopes.append(steep)
            states.append(state)
        seen = np.stack([self.look_start + self.look_rows @ states[end] for end in self.ends])
        shaped = seen.reshape(len(seen), *self.look_goal.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            found = group_losses(shaped, self.look_goal, self.look, self.loss)[0]
        return found, (outputs, slopes, shaped)

    def gradient(self, P: np.ndarray, states: Any, slopes: np.ndarray) -> np.ndarray:
        """The derivative of sum(slopes * losses) in the pulls, by one way back through all lengths."""
        outputs, steep, shaped = states
        found, back = np.zeros_like(P), np.zeros((self.rows.shape[1], self.start.shape[1]))
        weights, across = self.mass[:, None] * P.T[self.codes], np.ascontiguousarray(self.rows.T)
        due: dict[int, list[int]] = {}
        for row, end in enumerate(self.ends):
            due.setdefault(int(end), []).append(row)
        for number in range(len(self.lengths), -1, -1):
            for row in due.get(number, ()):
                pulled = slope(self.loss, shaped[row], self.look_goal) * (self._look_mean.T @ slopes[row])[:, None]
                back = back + self.look_rows.T @ self._flat(pulled)
            if not number:
                break
            length, piece = float(self.lengths[number - 1]), int(self.piece[number - 1])
            along = self.rows @ back
            each = self.mass * (steep[number - 1] * along).sum(1)
            found[piece] -= length * np.bincount(self.codes, each, found.shape[1])
            back = back - length * (across @ (weights[:, piece, None] * self._bent(outputs[number - 1], along)))
        return found

    @property
    def _look_mean(self) -> np.ndarray:
        """(G, points): the mean over every group of the points looked at."""
        member = np.zeros((len(self.look.groups), len(self.look)))
        mass = np.ones(len(self.look)) if self.look.weights is None else self.look.weights
        member[self.look.codes, np.arange(len(self.look))] = mass
        return np.asarray(member / member.sum(1, keepdims=True))

    def _flat(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, self.start.shape[1])

    def _bent(self, outputs: np.ndarray, along: np.ndarray) -> np.ndarray:
        """The second derivative of every point's loss times a change of its outputs."""
        if isinstance(self.loss, Square):
            return along
        shaped, change = outputs.reshape(self.goal.shape), along.reshape(self.goal.shape)
        if isinstance(self.loss, CrossEntropy):
            raised = np.exp(shaped - shaped.max(-1, keepdims=True))
            p = raised / raised.sum(-1, keepdims=True)
            return self._flat(p * (change - (p * change).sum(-1, keepdims=True)))
        if isinstance(self.loss, Logistic):
            p = 1.0 / (1.0 + np.exp(-shaped))
            return self._flat(p * (1.0 - p) * change)
        raise TypeError(f"`best_schedule` knows Square(), Logistic() and CrossEntropy(). Found {self.loss.definition}.")
