"""Steering: laws of groups and of points in any training loop, one line in place of the mean over the batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.point_law import PointLaw
from tiltmeter.interventions.pulls import pulls
from tiltmeter.interventions.term_law import TermLaw
from tiltmeter.problem.laws import refuse_unreachable
from tiltmeter.training.across_ranks import processes, summed
from tiltmeter.training.drawn_batches import DrawnBatches
from tiltmeter.training.group_codes import check_codes, unlike
from tiltmeter.training.group_gradients import group_gradients, group_means
from tiltmeter.training.law_memory import LawMemory
from tiltmeter.training.own_terms import OwnTerms


class Steering(nn.Module):
    """Turns the losses of a batch into the loss to minimise, as laws say; `train` and `ensemble` are users of it.

    >>> from tiltmeter.interventions import GroupDRO
    >>> data = GroupedData(np.zeros((100, 1)), np.zeros(100), ["a"] * 80 + ["b"] * 20)
    >>> steer = Steering(GroupDRO(rate=0.5), data)
    >>> losses, group = torch.tensor([0.1, 0.1, 0.9]), torch.tensor([0, 0, 1])  # group: codes, as data.codes
    >>> steer(losses, group)  # in place of losses.mean(): the groups count equally at first
    tensor(0.7917)
    >>> steer.pull.numpy().round(2)  # and group b more in the next step
    array([0.4, 0.6])

    Its state is in buffers, so it is saved and resumed with the module: `z` of the law, `remembered` losses of the
    groups, the count of `steps`, and the `pull` of every group in the step that comes. It has no parameters, unless a
    law trains a module `beside` the model (`LfF`, `GradientReversal`): then the optimiser gets `[*model.parameters(),
    *steer.parameters()]`. In evaluation mode (`steer.eval()`) it weighs and learns nothing.

    `laws` is a law of groups, laws of points, or both in a tuple. `data` says which groups there are and how many
    points each has; `proportions` how often groups are drawn where that is not as in the data. Laws that see gradients
    or the network need the `model`. Several `runs` at once have losses of shape (runs, batch), each its own state.

    Under DistributedDataParallel every process has its own copy, and losses and counts are summed over all of them, so
    that the copies stay the same. Checkpoints then belong at the end of a block of `every` steps.

    The laws act on training points: curves of held-out points may follow or not.
    """

    z: Tensor
    remembered: Tensor
    steps: Tensor
    pull: Tensor
    sums: Tensor
    counts: Tensor
    gram: Tensor

    def __init__(
        self,
        laws: Intervention | Iterable[Intervention],
        data: GroupedData,
        *,
        model: nn.Module | None = None,
        proportions: Mapping[Any, float] | None = None,
        runs: int | None = None,
    ) -> None:
        super().__init__()
        given = checked_interventions((laws,) if isinstance(laws, Intervention) else laws)
        self.law = next((law for law in given if isinstance(law, GroupLaw)), None)
        self.points = tuple(law for law in given if isinstance(law, PointLaw))
        for law in given:
            if not isinstance(law, (GroupLaw, PointLaw)):
                raise TypeError(
                    f"Steering applies laws of groups and of points. Found {type(law).__name__}, which changes "
                    f"{law.changes}: `train` applies it."
                )
        if not isinstance(data, GroupedData):
            raise TypeError(f"`data` should be GroupedData. Found {type(data).__name__}.")
        self.groups, self._sizes = data.groups, np.asarray(list(data.sizes.values()), dtype=float)
        self._trained = [] if model is None else [model]  # in a list: no part of this module
        self.terms = OwnTerms(self.points, data, model, runs)
        self.beside = nn.ModuleList(self.terms.modules)
        shape = (len(self.groups),) if runs is None else (runs, len(self.groups))
        self._shares = np.broadcast_to(share_of(data, proportions), shape).copy()
        self._kept: LawMemory | None = None
        start = self._shares
        if self.law is not None:
            check_groups(self.law, self.groups, self._shares)
            if self.law.sees_gram and model is None:
                raise ValueError(f"{type(self.law).__name__} sees gradients: give model= too.")
            if self.law.sees_gram and runs is not None:
                raise ValueError(f"{type(self.law).__name__} sees the gradients of one run. Found runs = {runs}.")
            start = self.law.start(self._shares)
        unknown = np.full(shape, np.nan)
        state = {"z": start, "remembered": unknown, "sums": np.zeros(shape), "counts": np.zeros(shape)}
        if self.law is not None and self.law.sees_gram:
            state["gram"] = np.zeros((len(self.groups),) * 2)
        for name, value in {**state, "pull": self._shares}.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))
        self.register_buffer("steps", torch.tensor(0))
        if self.law is not None and not self.law.sees_gram:
            first = Seen(0.0, self.groups, self._shares, unknown, self._sizes)
            self.pull.copy_(torch.from_numpy(pulls(self.law, start, first)))
            with np.errstate(all="ignore"):  # a trial: groups that the law does not name are told at once
                self.law.change(start, first)

    def forward(
        self,
        losses: Tensor,
        group: Tensor | None = None,
        *,
        scores: Tensor | None = None,
        y: Tensor | None = None,
        weights: Tensor | None = None,
        learn: bool = True,
        x: Any = None,
    ) -> Tensor:
        """The loss to minimise, from the losses of the points of a batch and the codes of their groups.

        Laws of points may also need `scores`, labels `y` and the points `x`. `weights` multiply losses and are not
        remembered. With `learn=False` the state stays as it is, as for a second pass over the same batch.
        """
        if losses.ndim == 0:
            raise ValueError('`losses` should be one per point: use reduction="none". Found a single number.')
        try:
            if not self.points:
                return self._weighed(losses, losses, group, weights, learn)
            each, term = self._each(losses, group, scores, y, x)
            value = self._weighed(losses, each, group, weights, learn)
        except (IndexError, RuntimeError):
            check_codes(group, self.groups)
            raise
        return value if term is None else value + term

    def _weighed(
        self, losses: Tensor, each: Tensor, group: Tensor | None, weights: Tensor | None, learn: bool
    ) -> Tensor:
        heavy = each if weights is None else weights * each
        law = self.law
        if law is None:
            return heavy.mean(-1)
        codes = self._codes(losses, group)
        if law.sees_gram:
            return self._by_gradients(heavy, each, codes, learn and self.training)
        memory = self._kept or self._memory()
        if law.by != "weights":
            value = heavy.mean(-1)
        else:
            factor = memory.factor(each, self._buffers["pull"]._version)  # type: ignore[union-attr]
            if heavy.ndim == 1:  # one node for autograd, with the gradient of a mean
                value = torch.dot(factor.index_select(0, codes), heavy)
            else:
                value = (factor[codes] * heavy).sum(-1)
        if learn and self.training:
            self._learn(memory, each, codes)
        return value

    def sampler(self, data: GroupedData, batch: int, length: int, *, seed: int = 0) -> DrawnBatches:
        """Batches for laws with by="draws": `DataLoader(points, batch_sampler=steer.sampler(train, 64, 1000))`."""
        if self.law is None or self.law.by != "draws":
            name = "no law of groups" if self.law is None else f'{type(self.law).__name__} with by="weights"'
            raise ValueError(f'A sampler is for laws with by="draws". Found {name}.')
        return DrawnBatches(self, data, batch, length, seed)

    def _each(
        self, losses: Tensor, group: Tensor | None, scores: Tensor | None, y: Tensor | None, x: Any
    ) -> tuple[Tensor, Tensor | None]:
        """The losses of points as laws make them, and what is added to that of the batch."""
        added: Tensor | None = None
        for number, law in enumerate(self.points):
            if scores is None or y is None:
                raise ValueError(f"{type(law).__name__} changes the loss of points: give scores= and y= too.")
            if isinstance(law, TermLaw):
                losses, term = self.terms(number, law, losses, group, scores, y, x)
                added = torch.as_tensor(term) if added is None else added + term
            elif losses.ndim == 1 or law.pointwise:
                losses = law.each(losses, scores, y)
            else:
                losses = torch.stack([law.each(*run) for run in zip(losses, scores, y, strict=True)])
        return losses, added

    def _codes(self, losses: Tensor, group: Tensor | None) -> Tensor:
        if not torch.is_tensor(group) or group.shape != losses.shape:
            raise unlike(losses, group, self._shares.ndim)
        if losses.ndim == 1 and group.dtype == torch.int64 and group.device == losses.device:
            return group
        codes = group.to(losses.device, torch.int64)
        if losses.ndim == 1:
            return codes
        return codes + len(self.groups) * torch.arange(len(codes), device=codes.device)[:, None]

    def _learn(self, memory: LawMemory, each: Tensor, codes: Tensor) -> None:
        memory.add(each, codes)
        memory.learn()
        if memory is not self._kept:  # the buffers lie on another device
            memory.settle()
            for name, array in memory.arrays.items():
                self._buffers[name].copy_(torch.as_tensor(array))  # type: ignore[union-attr]

    def _by_gradients(self, heavy: Tensor, each: Tensor, codes: Tensor, learn: bool) -> Tensor:
        """sum P_g (mean loss of the group in this batch), with P from the gradients of those means."""
        assert self.law is not None
        means, counts = group_means(heavy, codes, len(self.groups))
        whole = summed(counts)  # of all processes, whose gradients will be averaged
        parts = counts / whole.clamp(min=1.0)
        memory = self._memory()
        if learn and memory.steps % self.law.every == 0:
            own = np.flatnonzero(counts.cpu().numpy())
            rows = summed(parts[:, None] * group_gradients(means, own, self._trained[0]))
            gram = (rows @ rows.T).double().cpu().numpy()
            if np.isfinite(gram).all():
                memory.see(gram, whole.cpu().numpy() > 0)
        if learn:
            self._learn(memory, each, codes)
        return processes() * (torch.as_tensor(memory.pull).to(means) * parts * means).sum()

    def _memory(self) -> LawMemory:
        """The arrays of the buffers: the same memory, found once, or a copy of what lies on another device."""
        if self._kept is not None:
            return self._kept
        assert self.law is not None
        buffers = {name: buffer for name, buffer in self._buffers.items() if buffer is not None}
        arrays = {name: buffer.cpu().numpy() for name, buffer in buffers.items()}
        memory = LawMemory(self.law, self.groups, self._shares, self._sizes, arrays)
        if all(buffer.is_cpu for buffer in buffers.values()):
            self._kept = memory
        return memory

    def _settle(self) -> None:
        """Bring the buffers up to date and forget their arrays, which may be replaced now."""
        if self._kept is not None:
            self._kept.settle()
            self._kept = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_buffers", {}):
            self._settle()
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        self._settle()
        return self.__dict__.copy()

    def _apply(self, *given: Any, **more: Any) -> Steering:
        self._settle()
        super()._apply(*given, **more)  # type: ignore[no-untyped-call]
        return self

    def _save_to_state_dict(self, *given: Any) -> None:
        self._settle()
        super()._save_to_state_dict(*given)

    def _load_from_state_dict(self, *given: Any) -> None:
        self._kept = None
        super()._load_from_state_dict(*given)


def trained_parameters(model: nn.Module, steering: Steering | None) -> list[nn.Parameter]:
    """The parameters that an optimiser gets: those of the model, and those that laws train beside it."""
    beside = () if steering is None else steering.parameters()
    return [*model.parameters(), *(one for one in beside if one.requires_grad)]


def check_groups(law: GroupLaw, groups: tuple[Any, ...], shares: np.ndarray) -> None:
    """Refuse data whose groups a law cannot steer."""
    if len(groups) < 2:
        raise ValueError(f"{type(law).__name__} needs training groups. Found one group, {groups[0]!r}.")
    refuse_unreachable(law, groups, shares)
