"""Steering: laws of groups and of points in any training loop, one line in place of the mean over the batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData, share_of
from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.group_law import GroupLaw, Seen
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.point_law import PointLaw
from tiltmeter.interventions.pulls import changed, gram_pulls, pulls
from tiltmeter.interventions.remembered import remembered
from tiltmeter.interventions.term_law import TermLaw
from tiltmeter.problem.laws import refuse_unreachable
from tiltmeter.training.across_ranks import processes, summed
from tiltmeter.training.drawn_batches import DrawnBatches
from tiltmeter.training.group_gradients import group_gradients, group_means
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
        self._factors: tuple[Any, Tensor] | None = None
        self._turn = 0  # how often the pull has changed
        self._arrays: dict[str, tuple[int | None, np.ndarray | None]] = {}
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
            self._keep("pull", pulls(self.law, start, self._seen(unknown)))

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
        each, term = self._each(losses, group, scores, y, x)
        value = self._weighed(losses, each, group, weights, learn)
        return value if term is None else value + term

    def _weighed(
        self, losses: Tensor, each: Tensor, group: Tensor | None, weights: Tensor | None, learn: bool
    ) -> Tensor:
        heavy = each if weights is None else weights * each
        if self.law is None:
            return heavy.mean(-1)
        codes = self._codes(losses, group)
        learn = learn and self.training
        if self.law.sees_gram:
            return self._by_gradients(heavy, each, codes, learn)
        if self.law.by != "weights":
            value = heavy.mean(-1)
        elif heavy.ndim == 1:
            value = torch.dot(
                self._factor(each).index_select(0, codes), heavy
            )  # one node for autograd, with the gradient of a mean
        else:
            value = (self._factor(each)[codes] * heavy).sum(-1)
        if learn:
            self._tally(each.detach(), codes)
            self._learn()
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
        if group is None or group.shape != losses.shape:
            found = "None" if group is None else f"shape {tuple(group.shape)}"
            raise ValueError(
                f"`group` should hold the code of every point, of shape {tuple(losses.shape)}. Found {found}."
            )
        codes = group.to(losses.device, torch.int64)
        if losses.ndim == 1:
            return codes
        return codes + len(self.groups) * torch.arange(len(codes), device=codes.device)[:, None]

    def _factor(self, like: Tensor) -> Tensor:
        """P / p of all groups (of all runs) over the points of a batch, in the precision of the losses.

        It is made anew when the pull has changed.
        """
        key = self._turn, self.pull._version, like.dtype, like.device, like.shape[-1]
        if self._factors is None or self._factors[0] != key:
            found = torch.from_numpy((self._array("pull") / self._shares).ravel()).to(like.device, like.dtype)
            self._factors = key, found.mul_(1.0 / like.shape[-1])
        return self._factors[1]

    def _tally(self, each: Tensor, codes: Tensor) -> None:
        if each.is_cpu and self.sums.is_cpu:  # NumPy takes a fraction of the time for numbers this few
            sums, counts = self._array("sums").reshape(-1), self._array("counts").reshape(-1)
            places = codes.numpy().ravel()
            sums += np.bincount(places, each.double().numpy().ravel(), sums.size)
            counts += np.bincount(places, None, sums.size)
            return
        where = codes.flatten().to(self.sums.device)
        self.sums.view(-1).index_add_(0, where, each.flatten().to(self.sums))
        self.counts.view(-1).index_add_(0, where, torch.ones_like(where, dtype=self.counts.dtype))

    def _learn(self) -> None:
        """Count the step; at the end of a block of `every` steps remember, change the state, say what comes."""
        law = self.law
        assert law is not None
        done = int(self._array("steps")) + 1
        self._keep("steps", done)
        if done % law.every:
            return
        sums, counts = self._array("sums"), self._array("counts")
        if processes() > 1:
            sums, counts = (summed(part).cpu().numpy() for part in (self.sums, self.counts))
        known = remembered(self._array("remembered"), sums, counts, float(law.memory))
        seen = self._seen(known, self._array("gram") if law.sees_gram else None)
        z = changed(law, self._array("z"), seen, float(law.every))
        for name, value in (("z", z), ("remembered", known), ("sums", 0.0), ("counts", 0.0)):
            self._keep(name, value)
        if not law.sees_gram:
            self._keep("pull", pulls(law, z, seen))

    def _by_gradients(self, heavy: Tensor, each: Tensor, codes: Tensor, learn: bool) -> Tensor:
        """sum P_g (mean loss of the group in this batch), with P from the gradients of those means."""
        assert self.law is not None
        means, counts = group_means(heavy, codes, len(self.groups))
        whole = summed(counts)  # of all processes, whose gradients will be averaged
        parts = counts / whole.clamp(min=1.0)
        if learn and int(self._array("steps")) % self.law.every == 0:
            own = np.flatnonzero(counts.cpu().numpy())
            rows = summed(parts[:, None] * group_gradients(means, own, self._trained[0]))
            gram = (rows @ rows.T).double().cpu().numpy()
            if np.isfinite(gram).all():
                self._keep("gram", gram)
                self._set_pull(gram, np.flatnonzero(whole.cpu().numpy()))
        if learn:
            self._tally(each.detach(), codes)
            self._learn()
        return processes() * (self.pull.to(means) * parts * means).sum()

    def _set_pull(self, gram: np.ndarray, here: np.ndarray) -> None:
        assert self.law is not None
        present = np.isin(np.arange(len(self.groups)), here)
        one = Seen(*self._place(), self._shares[None], self._array("remembered")[None], self._sizes, gram[None])
        found = gram_pulls(self.law, self._array("z")[None], one, present[None])[0]
        self._keep("pull", np.where(present, found, self._array("pull")))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrays": {}, "_factors": None}  # a copy has its own memory

    def _place(self) -> tuple[float, tuple[Any, ...]]:
        return float(self._array("steps")), self.groups

    def _seen(self, losses: np.ndarray, gram: np.ndarray | None = None) -> Seen:
        return Seen(*self._place(), self._shares, losses, self._sizes, gram)

    def _array(self, name: str) -> np.ndarray:
        """A buffer as NumPy's: the same memory, found once, or a copy of one that lies on another device."""
        buffer = self._buffers[name]
        assert buffer is not None
        if not buffer.is_cpu:
            return np.asarray(buffer.cpu().numpy())
        place, found = self._arrays.get(name, (None, None))
        if found is None or place != buffer.data_ptr():
            found = buffer.numpy()
            self._arrays[name] = buffer.data_ptr(), found
        return found

    def _keep(self, name: str, value: Any) -> None:
        buffer = self._buffers[name]
        assert buffer is not None
        if buffer.is_cpu:
            self._array(name)[...] = value
        else:
            buffer.copy_(torch.as_tensor(value))
        if name == "pull":
            self._turn += 1


def trained_parameters(model: nn.Module, steering: Steering | None) -> list[nn.Parameter]:
    """The parameters that an optimiser gets: those of the model, and those that laws train beside it."""
    beside = () if steering is None else steering.parameters()
    return [*model.parameters(), *(one for one in beside if one.requires_grad)]


def check_groups(law: GroupLaw, groups: tuple[Any, ...], shares: np.ndarray) -> None:
    """Refuse data whose groups a law cannot steer."""
    if len(groups) < 2:
        raise ValueError(f"{type(law).__name__} needs training groups. Found one group, {groups[0]!r}.")
    refuse_unreachable(law, groups, shares)
