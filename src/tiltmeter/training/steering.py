"""Steering: interventions of groups and of points in any training loop, one line in place of the mean over the
batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from tiltmeter.arguments import checked_count, checked_number
from tiltmeter.data.group_shares import share_of
from tiltmeter.data.grouped import GroupedData
from tiltmeter.interventions.checked import checked_interventions
from tiltmeter.interventions.group_intervention import (
    GroupIntervention,
    Seen,
    changed,
    gram_pulls,
    pulls,
    refuse_unreachable,
    remembered,
)
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.kinds import PointIntervention, TermIntervention
from tiltmeter.measures.snapshot import Snapshot
from tiltmeter.names import described
from tiltmeter.recipe.lowered import constant_pull, group_intervention
from tiltmeter.recipe.recipe import Recipe
from tiltmeter.record.labelled import labels_array
from tiltmeter.training.drawn_batches import DrawnBatches
from tiltmeter.training.own_terms import OwnTerms
from tiltmeter.training.shards import processes, summed


def group_means(losses: Tensor, codes: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean loss of every group, 0 where it has no point, and the number of its points.

    >>> group_means(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 2]), 3)
    (tensor([2., 0., 5.]), tensor([2., 0., 1.]))
    """
    counts = torch.bincount(codes, minlength=groups).to(losses.dtype)
    sums = torch.zeros(groups, dtype=losses.dtype, device=losses.device).index_add(0, codes, losses)
    return sums / counts.clamp(min=1.0), counts


def group_gradients(means: Tensor, which: np.ndarray, model: nn.Module) -> Tensor:
    """Return a row for every group: the gradient of its mean with respect to all trained parameters.

    Rows of groups that are not in `which` are zero.
    The graph is kept, so that the weighted sum of the means can be differentiated afterwards.

    A network that stands in for a wider one, as a twin does, has `gradient_norms`: what the square of a parameter's
    gradient counts in the wider network, by name.
    """
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    trained = list(named.values())
    norms: Mapping[str, float] = getattr(model, "gradient_norms", {})
    factors = [norms.get(name, 1.0) ** 0.5 for name in named]
    rows = means.new_zeros(len(means), sum(parameter.numel() for parameter in trained))
    for code in which:
        found = torch.autograd.grad(means[int(code)], trained, retain_graph=True, allow_unused=True)
        parts = [
            torch.zeros_like(p) if g is None else (g if factor == 1.0 else factor * g)
            for p, g, factor in zip(trained, found, factors, strict=True)
        ]
        torch.cat([part.flatten() for part in parts], out=rows[int(code)])
    return rows


class InterventionMemory:
    """The state of an intervention in the arrays of its buffers, which it changes in place; short-lived.

    The losses of a block of `every` steps are added up point by point, in their order, so that the sums are the same
    wherever a training is interrupted. `together`: those of all processes count.
    """

    def __init__(
        self,
        law: GroupIntervention,
        groups: tuple[Any, ...],
        shares: np.ndarray,
        sizes: np.ndarray,
        arrays: Mapping[str, np.ndarray],
        together: bool = True,
    ) -> None:
        self._law, self._groups, self._shares, self._sizes, self._together = law, groups, shares, sizes, together
        self.arrays = arrays
        self.z, self.remembered, self.pull = arrays["z"], arrays["remembered"], arrays["pull"]
        self._sums, self._counts = arrays["sums"], arrays["counts"]
        self._steps, self._gram = arrays["steps"], arrays.get("gram")
        self._factor: Tensor | None = None
        self._made_for: Any = None

    @property
    def steps(self) -> int:
        return int(self._steps)

    def add(self, losses: Tensor, codes: Tensor) -> None:
        """Add the losses of a batch to the sums of their groups (and runs), point by point in order."""
        places, size = codes.flatten().cpu().numpy(), self._sums.size
        # The sums so far come first, so that all is added in the same order.
        values = np.concatenate([self._sums.ravel(), losses.detach().flatten().double().cpu().numpy()])
        sums = np.bincount(np.concatenate([np.arange(size), places]), values, size)
        self._sums[...] = sums.reshape(self._sums.shape)
        self._counts += np.bincount(places, None, size).reshape(self._counts.shape)

    def add_sums(self, sums: np.ndarray, counts: np.ndarray) -> None:
        """Add the losses of a batch that are summed up already."""
        self._sums += sums
        self._counts += counts

    def learn(self) -> None:
        """Count the step; at the end of a block remember, change the state, say what comes."""
        law = self._law
        self._steps += 1
        done = self.steps
        if done % law.every:
            return
        sums, counts = self._sums, self._counts
        if self._together and processes() > 1:
            sums, counts = (summed(torch.as_tensor(one)).cpu().numpy() for one in (sums, counts))
        known = remembered(self.remembered, sums, counts, float(law.memory))
        seen = Seen(float(done), self._groups, self._shares, known, self._sizes, self._gram)
        z = changed(law, self.z, seen, float(law.every))
        if not law.sees_gram:
            self.pull[...] = pulls(law, z, seen)
            self._made_for = None
        self.z[...] = z
        self.remembered[...] = known
        self._sums.fill(0.0)
        self._counts.fill(0.0)

    def see(self, gram: np.ndarray, present: np.ndarray) -> None:
        """Set the pulls of the groups that are present from the inner products of their gradients."""
        assert self._gram is not None
        self._gram[...] = gram
        one = Seen(float(self._steps), self._groups, self._shares[None], self.remembered[None], self._sizes, gram[None])
        found = gram_pulls(self._law, self.z[None], one, present[None])[0]
        self.pull[...] = np.where(present, found, self.pull)

    def factor(self, like: Tensor, version: int) -> Tensor:
        """P / p of all groups (of all runs) over the points of a batch, in the precision of the losses.

        It is made anew when the pull has changed.
        """
        key = version, like.dtype, like.device, like.shape[-1]
        if self._factor is None or self._made_for != key:
            plain = torch.from_numpy((self.pull / self._shares).ravel())
            self._factor, self._made_for = plain.to(like).mul_(1.0 / like.shape[-1]), key
        return self._factor


def first_arrays(
    law: GroupIntervention | None, groups: tuple[Any, ...], shares: np.ndarray, sizes: np.ndarray
) -> dict[str, np.ndarray]:
    """The state of an intervention before the first step; without one, groups count as they are drawn."""
    unknown = np.full(shares.shape, np.nan)
    start = shares if law is None else law.start(shares)
    arrays = {"z": start, "remembered": unknown, "sums": np.zeros(shares.shape), "counts": np.zeros(shares.shape)}
    if law is not None and law.sees_gram:
        arrays["gram"] = np.zeros((len(groups),) * 2)
    if law is None or law.sees_gram:
        return {**arrays, "pull": shares.copy()}
    return {**arrays, "pull": pulls(law, start, Seen(0.0, groups, shares, unknown, sizes))}


def unlike(losses: torch.Tensor, group: Any, dims: int) -> Exception:
    """The error of codes that do not match the losses, which have `dims` dimensions where all is well."""
    if group is not None and not torch.is_tensor(group):
        return TypeError(
            "`group` should be a tensor of codes, as torch.as_tensor(train.codes)[batch]. Found "
            f"{type(group).__name__}."
        )
    if losses.ndim > dims:
        squeezed = ": squeeze them, as losses[:, 0]" if losses.shape[-1] == 1 else ""
        return ValueError(f"`losses` should be one per point. Found shape {tuple(losses.shape)}{squeezed}.")
    found = "None" if group is None else f"shape {tuple(group.shape)}"
    return ValueError(f"`group` should hold the code of every point, of shape {tuple(losses.shape)}. Found {found}.")


def check_codes(group: Any, groups: Sequence[Any]) -> None:
    """Refuse codes of groups that do not exist; looked at only once something went wrong."""
    if torch.is_tensor(group) and group.numel():
        low, high = int(group.min()), int(group.max())
        if low < 0 or high >= len(groups):
            raise ValueError(
                f"`group` should hold codes from 0 to {len(groups) - 1}, of the groups {', '.join(map(repr, groups))}. "
                f"Found {low if low < 0 else high}."
            ) from None


class Steering(nn.Module):
    """Turns the losses of a batch into the loss to minimise, as interventions say; `train` and `ensemble` are users of
    it.

    >>> from tiltmeter.interventions import GroupDRO
    >>> data = GroupedData(np.zeros((100, 1)), np.zeros(100), ["a"] * 80 + ["b"] * 20)
    >>> steer = Steering(GroupDRO(rate=0.5), data)
    >>> losses, group = torch.tensor([0.1, 0.1, 0.9]), torch.tensor([0, 0, 1])  # group: codes, as data.codes
    >>> steer(losses, group)  # in place of losses.mean(): the groups count equally at first
    tensor(0.7917)
    >>> steer.pull.numpy().round(2)  # and group b more in the next step
    array([0.4, 0.6])

    Its state is in buffers, so it is saved and resumed with the module: `z` of the intervention, `remembered` losses of
    the groups, the count of `steps`, and the `pull` of every group in the step that comes. It has no parameters, unless
    an intervention trains a module `beside` the model (`LfF`, `GradientReversal`): then the optimiser gets
    `[*model.parameters(), *steer.parameters()]`. In evaluation mode (`steer.eval()`) it weighs and learns nothing.

    Under DistributedDataParallel every process has its own copy, and losses and counts are summed over all of them, so
    that the copies stay the same. Checkpoints then belong at the end of a block of `every` steps.

    The interventions act on training points: curves of held-out points may follow or not.

    Args:
        laws: An intervention, or several in a tuple: of groups, of points, or both.
        data: Training points: which groups there are, and how many points each has.
        model: Network that is trained, for interventions that see it or its gradients; None: they do not.
        proportions: How often groups are drawn; None: as in the data.
        runs: Networks trained at once, with losses of shape (runs, batch); None: one.
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
        if runs is not None:
            checked_count("runs", runs)
        if isinstance(proportions, Mapping):
            for group, share in proportions.items():
                checked_number(f"proportions[{group!r}]", share)
        super().__init__()
        given = checked_interventions((laws,) if isinstance(laws, Intervention) else laws)
        self.law = next((law for law in given if isinstance(law, GroupIntervention)), None)
        self.points = tuple(law for law in given if isinstance(law, PointIntervention))
        for law in given:
            if not isinstance(law, (GroupIntervention, PointIntervention)):
                raise TypeError(
                    f"Steering applies interventions of groups and of points. Found {type(law).__name__}, which "
                    "changes "
                    f"{law.changes}: `train` applies it."
                )
        if not isinstance(data, GroupedData):
            raise TypeError(f"`data` should be GroupedData. Found {type(data).__name__}.")
        self.groups, self._sizes = data.groups, np.asarray(list(data.sizes.values()), dtype=float)
        if model is not None and not isinstance(model, nn.Module):
            raise TypeError(f"`model` should be a torch.nn.Module, or None. Found {type(model).__name__}.")
        self._trained = [] if model is None else [model]  # in a list: no part of this module
        self.terms = OwnTerms(self.points, data, model, runs)
        self.beside = nn.ModuleList(self.terms.modules)
        shape = (len(self.groups),) if runs is None else (runs, len(self.groups))
        self._shares = np.broadcast_to(share_of(data, proportions), shape).copy()
        self._kept: InterventionMemory | None = None
        if self.law is not None:
            check_groups(self.law, self.groups, self._shares)
            if self.law.sees_gram and model is None:
                raise ValueError(f"{type(self.law).__name__} sees gradients: give model= too.")
            if self.law.sees_gram and runs is not None:
                raise ValueError(f"{type(self.law).__name__} sees the gradients of one run. Found runs = {runs}.")
        arrays = first_arrays(self.law, self.groups, self._shares, self._sizes)
        for name, value in arrays.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))
        self.register_buffer("steps", torch.tensor(0))
        if self.law is not None and not self.law.sees_gram:
            first = Seen(0.0, self.groups, self._shares, arrays["remembered"], self._sizes)
            with np.errstate(all="ignore"):  # a trial: groups that the intervention does not name are told at once
                self.law.change(arrays["z"], first)

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

        Interventions of points may also need `scores`, labels `y` and the points `x`. `weights` multiply losses and are
        not remembered. With `learn=False` the state stays as it is, as for a second pass over the same batch."""
        if losses.ndim == 0:
            raise ValueError('`losses` should be one per point: use reduction="none". Found a single number.')
        if not losses.numel():
            raise ValueError("`losses` should have at least one point. Found an empty batch.")
        try:
            if not self.points:
                return self._weighed(losses, losses, group, weights, learn)
            each, term = self._each(losses, group, scores, y, x)
            value = self._weighed(losses, each, group, weights, learn)
        except (IndexError, RuntimeError, ValueError):
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
        """Batches for interventions with by="draws": `DataLoader(points, batch_sampler=steer.sampler(train, 64,
        1000))`."""
        if self.law is None or self.law.by != "draws":
            name = "no intervention of groups" if self.law is None else f'{type(self.law).__name__} with by="weights"'
            raise ValueError(f'A sampler is for interventions with by="draws". Found {name}.')
        return DrawnBatches(self, data, batch, length, seed)

    def _each(
        self, losses: Tensor, group: Tensor | None, scores: Tensor | None, y: Tensor | None, x: Any
    ) -> tuple[Tensor, Tensor | None]:
        """The losses of points as interventions make them, and what is added to that of the batch."""
        added: Tensor | None = None
        for number, law in enumerate(self.points):
            if scores is None or y is None:
                raise ValueError(f"{type(law).__name__} changes the loss of points: give scores= and y= too.")
            if isinstance(law, TermIntervention):
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

    def _learn(self, memory: InterventionMemory, each: Tensor, codes: Tensor) -> None:
        memory.add(each, codes)
        memory.learn()
        if memory is not self._kept:  # the buffers lie on another device
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

    def _memory(self) -> InterventionMemory:
        """The arrays of the buffers: the same memory, found once, or a copy of what lies on another device."""
        if self._kept is not None:
            return self._kept
        assert self.law is not None
        buffers = {name: buffer for name, buffer in self._buffers.items() if buffer is not None}
        arrays = {name: buffer.cpu().numpy() for name, buffer in buffers.items()}
        memory = InterventionMemory(self.law, self.groups, self._shares, self._sizes, arrays)
        if all(buffer.is_cpu for buffer in buffers.values()):
            self._kept = memory
        return memory

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_buffers", {}):
            self._kept = None  # the arrays of a buffer that is replaced
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None}

    def _apply(self, *given: Any, **more: Any) -> Steering:
        self._kept = None
        super()._apply(*given, **more)  # type: ignore[no-untyped-call]
        return self

    def _load_from_state_dict(self, *given: Any) -> None:
        self._kept = None
        super()._load_from_state_dict(*given)


def trained_parameters(model: nn.Module, steering: Steering | None) -> list[nn.Parameter]:
    """The parameters that an optimiser gets: those of the model, and those that interventions train beside it."""
    beside = () if steering is None else steering.parameters()
    return [*model.parameters(), *(one for one in beside if one.requires_grad)]


def check_groups(law: GroupIntervention, groups: tuple[Any, ...], shares: np.ndarray) -> None:
    """Refuse data whose groups an intervention cannot steer."""
    if len(groups) < 2:
        raise ValueError(f"{type(law).__name__} needs training groups. Found one group, {groups[0]!r}.")
    refuse_unreachable(law, groups, shares)


@dataclass(frozen=True)
class PullCurve:
    """A measure that asks the steering, not the snapshot; a constant intervention has the same pull at every
    evaluation."""

    groups: tuple[Any, ...]
    source: Steering | np.ndarray

    @classmethod
    def of(cls, recipe: Recipe, data: GroupedData, steering: Steering | None) -> PullCurve | None:
        """The curve of a recipe as it was asked for; None without an intervention of groups."""
        law = group_intervention(recipe)
        if law is None:
            return None
        if law.constant:
            return cls(data.groups, constant_pull(law, data, share_of(data, recipe.drawn)))
        assert steering is not None
        return cls(data.groups, steering)

    def __call__(self, snapshot: Snapshot) -> dict[str, xr.DataArray]:  # noqa: ARG002
        return {"pull": self.reading({})}

    def reading(self, runs: Mapping[str, Any]) -> xr.DataArray:
        """The pulls as they are now, by group and, of several runs, by their dimensions."""
        coords: dict[str, Any] = {"group": labels_array(self.groups), **runs}
        sizes = [len(labels) for labels in coords.values()]
        if isinstance(self.source, Steering):
            values = np.moveaxis(self.source.pull.cpu().numpy(), -1, 0).reshape(sizes).copy()
        else:
            values = np.broadcast_to(self.source.reshape(-1, *(1,) * len(runs)), sizes).copy()
        return described("pull", xr.DataArray(values, dims=tuple(coords), coords=coords))
