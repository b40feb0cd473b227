"""Answers: the outputs of a model on all points, computed in chunks and collected in one snapshot."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.shared.by_group import GroupScores
from tiltmeter.measures.from_scores import probability_loss
from tiltmeter.measures.output_kind import gives_probabilities, loss_of_probabilities, say_probabilities
from tiltmeter.measures.point_loss import PointLoss, point_loss
from tiltmeter.measures.seen_model import SeenModel
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.measures.task import Task, decided, task_of
from tiltmeter.modules.forward import Read, scores

#: Number of points on which the model and the loss are tried before training.
TRIED = 8
#: Number of scores that are processed together.
GATHERED = 2**20


class Answers:
    """The held-out points, with everything about the model and the loss that does not change during training.

    `whole` has labels and groups of all points where `data` is only the part that this process looks at.
    """

    def __init__(
        self,
        model: nn.Module,
        data: GroupedData,
        loss: Any,
        decide: Callable[[Any], Any] | None,
        read: Read | None,
        chunk: int,
        keep_scores: bool,
        whole: GroupedData | None = None,
    ) -> None:
        self.data, self.decide, self.read, self.chunk = whole or data, decide, read, chunk
        self._own = whole is None
        self._blanks: dict[str, Any] = {}
        self._x, y = data.tensor_points()
        labels = self.data.labels.tolist()
        # Points spread over the whole data set, so that the trial includes every kind of label.
        few = torch.as_tensor(np.unique(np.linspace(0, len(data) - 1, TRIED).astype(np.int64)))
        tried = self._x[few]
        sample = trial_scores(model, tried, read)
        outputs = sample.shape[1] if sample.ndim == 2 else 1
        _check_classes(self.data, outputs, loss)
        if outputs > 1:
            task_of(self.data.y, outputs, "softmax", False)  # refuses labels outside the outputs
        goals = _beside((y.long() if outputs > 1 else y.to(torch.float32))[few], sample)
        if whole is not None:
            y = torch.as_tensor(whole.y)
        self._y = y.long() if outputs > 1 else y.to(torch.float32)
        self.given = loss
        self.loss: PointLoss = point_loss(loss, sample, goals, labels)
        takes_scores = self.loss.link in ("sigmoid", "softmax") and not sample.is_meta
        if takes_scores and gives_probabilities(model, tried, read):
            if loss is None:
                self.given = loss_of_probabilities(outputs > 1)
                self.loss = point_loss(self.given, sample, goals, labels)
            say_probabilities(loss, self.loss.link, self.loss.definition)
        self.task: Task = task_of(self.data.y, outputs, self.loss.link, decide is not None)
        self._keep = keep_scores or self.loss.each is None or not self.task.decides or decide is not None

    def snapshot(self, model: nn.Module, step: int | None = None) -> Snapshot:
        """A snapshot of the model now. Only scores and a few numbers per point are kept after each chunk.

        Of a model that answers by group, `seen` is the model inside.
        """
        if not self._own:
            raise TypeError(
                "Held-out data in parts (sharded=True) are evaluated by all ranks together: call `probe(step)`."
            )
        bare = model.model if isinstance(model, GroupScores) else model
        seen = SeenModel(bare, self.task, self.loss, self._x, self._y, self.read, self.chunk, self.decide)
        chunks: Iterable[tuple[int, Tensor]] = self._gathered(bare)
        if isinstance(model, GroupScores):
            codes = model.codes_of(self.data)
            chunks = ((at, model.rescored(score, codes[at : at + len(score)])) for at, score in chunks)
        return self.assemble(chunks, seen, step)

    def own_scores(self, model: nn.Module) -> Tensor:
        """The scores of the points of this process, to be joined with those of others and given to `assemble`."""
        return torch.cat([score for _, score in self._gathered(model)])

    def assemble(
        self, chunks: Iterable[tuple[int, Tensor]], seen: SeenModel | None = None, step: int | None = None
    ) -> Snapshot:
        """A snapshot from scores that were computed elsewhere; each chunk comes with the index of its first point."""
        parts: dict[str, list[Tensor]] = {}
        for first, score in chunks:
            for name, values in self._read(score, self._y[first : first + len(score)]).items():
                parts.setdefault(name, []).append(values)
        found = {name: _joined(values).cpu().numpy().astype(np.float64) for name, values in parts.items()}
        kept = found.get("score")
        decision = found.get("decision")
        if self.decide is not None and self.task.decides:
            assert kept is not None
            decision = decided(self.decide, kept, self.task)
        elif decision is not None and self.task.outputs == 1:
            decision = np.where(decision > 0, self.task.labels[-1], self.task.labels[0])
        return Snapshot(
            data=self.data,
            task=self.task,
            definition=self.loss.definition,
            loss=found.get("loss"),
            group_loss=self._group_loss(kept) if self.loss.each is None else None,
            decision=decision,
            margin=found.get("margin"),
            confidence=found.get("confidence"),
            score=kept,
            seen=seen,
            step=step,
            blanks=self._blanks,
        )

    def repeated(self, times: int) -> Answers:
        """The same points once for each of several models; every model has its own groups."""
        many = copy.copy(self)
        many.data, many._y = repeated(self.data, times), self._y.repeat(times)
        many._blanks = {}
        return many

    def _gathered(self, model: nn.Module) -> Iterator[tuple[int, Tensor]]:
        """Scores of many chunks together: enough to need few small operations, but limited in number."""
        waiting: list[Tensor] = []
        first, count = 0, len(self._x)
        for where, score in scores(model, self._x, self.read, self.chunk):
            if score.is_meta:
                raise ValueError("A model on the meta device has shapes but no values: it cannot be measured.")
            waiting.append(score)
            if where.stop == count or score.numel() * len(waiting) >= GATHERED:
                yield first, _joined(waiting)
                waiting, first = [], where.stop

    def _read(self, score: Tensor, y: Tensor) -> dict[str, Tensor]:
        y = _beside(y, score)
        found = {"score": score} if self._keep else {}
        if self.loss.of_probabilities:
            of_points = probability_loss(score.detach().cpu().double().numpy(), y.cpu().numpy(), self.task.labels[-1])
            found["loss"] = torch.from_numpy(of_points)
        elif self.loss.each is not None:
            found["loss"] = self.loss.each(score, y)
        if not self.task.decides:
            return found
        return {**found, **(_of_one(score, y, self.task) if score.ndim == 1 else _of_several(score, y, self.task))}

    def _group_loss(self, score: np.ndarray | None) -> np.ndarray:
        assert score is not None
        values = np.full(len(self.data.groups), np.nan)
        for code in np.unique(self.data.codes):
            members = np.flatnonzero(self.data.codes == code)
            part = torch.as_tensor(score[members], dtype=torch.float32)
            values[code] = float(self.loss.whole(part, _beside(self._y[members], part)))
        return values


def trial_scores(model: nn.Module, x: Any, read: Read | None) -> Tensor:
    """The scores of a few points; points of a shape that the model does not take are refused in a sentence."""
    try:
        return next(scores(model, x, read, len(x)))[1]
    except RuntimeError as error:
        said = str(error).strip().splitlines()[0]
        if not any(words in said for words in ("cannot be multiplied", "Given groups=", "Expected", "size mismatch")):
            raise
        layers = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
        first = next(layers, None)
        wanted = (
            ""
            if first is None or not isinstance(x, Tensor) or x.ndim != 2
            else f" Its first linear layer takes {first.in_features} numbers."
        )
        raise ValueError(
            f"`model` should take the points looked at. Found points of shape {tuple(x.shape[1:])}, which it cannot."
            f"{wanted}"
        ) from error


#: So many whole-number labels are classes; more are measurements.
CLASSES = 20


def _check_classes(data: GroupedData, outputs: int, loss: Any) -> None:
    labels = data.labels
    if loss is None and outputs == 1 and data.y.dtype.kind in "iub" and 2 < len(labels) <= CLASSES:
        raise ValueError(
            f"A model with one output decides between two labels. Found {len(labels)} different ones: give it "
            f"{len(labels)} outputs, or for a regression say loss=Square()."
        )


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _beside(y: Tensor, score: Tensor) -> Tensor:
    """Labels on the device of the scores, as classes or in the floating-point type of the scores."""
    return y.to(score.device) if score.ndim == 2 else y.to(score.device, score.dtype)


def _of_one(score: Tensor, y: Tensor, task: Task) -> dict[str, Tensor]:
    low, high = task.labels
    above = score - task.threshold if task.threshold else score
    found = {"decision": above > 0, "margin": torch.where(y == high, above, -above)}
    if task.link == "sigmoid":
        found["confidence"] = torch.sigmoid(above.abs())
    elif task.link != "none":
        chance = (score if task.link == "probability" else (score - low) / (high - low)).clamp(0.0, 1.0)
        found["confidence"] = torch.maximum(chance, 1.0 - chance)
    return found


def _of_several(score: Tensor, y: Tensor, task: Task) -> dict[str, Tensor]:
    best, decision = score.max(1)
    own = score.gather(1, y[:, None])
    other = score.scatter(1, y[:, None], -torch.inf).amax(1)
    found = {"decision": decision, "margin": own[:, 0] - other}
    if task.link == "softmax":
        found["confidence"] = torch.exp(best - torch.logsumexp(score, 1))
    elif task.link == "linear":
        found["confidence"] = best.clamp(0.0, 1.0)
    return found


def repeated(data: GroupedData, times: int) -> GroupedData:
    """All points repeated `times` times, in groups numbered 0, 1, 2, ...; all points of the first copy come first.

    >>> data = GroupedData(np.zeros((60, 3)), np.zeros(60), ["a", "b"] * 30)
    >>> twice = repeated(data, 2)
    >>> twice.sizes, twice.x.shape
    ({0: 30, 1: 30, 2: 30, 3: 30}, (120, 0))

    The features are left out, because they would only be copies.
    """
    count = len(data.groups)
    codes = (np.arange(times)[:, None] * count + data.codes).ravel()
    weights = None if data.weights is None else np.tile(data.weights, times)
    many = object.__new__(GroupedData)
    many._set(np.empty((times * len(data), 0)), np.tile(data.y, times), codes, tuple(range(times * count)), weights)
    return many
