"""Probe: watch the groups of held-out points during any PyTorch training, without changing it."""

from __future__ import annotations

import gc
import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tiltmeter.arguments import checked_flag, checked_kind
from tiltmeter.data.arrays import is_tensor
from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.answers import Answers
from tiltmeter.measures.default_curves import DEFAULTS
from tiltmeter.measures.group_metric import GroupMetric
from tiltmeter.measures.point_keeper import PointKeeper
from tiltmeter.measures.snapshot import Measure, Snapshot
from tiltmeter.modules.forward import bare, describe
from tiltmeter.modules.untouched import changes_told, untouched, versions
from tiltmeter.recipe.watch import Watch, checked_watch
from tiltmeter.record import Origin, Recorder, Trajectory, When
from tiltmeter.record.when import StepsToCome, missing_evaluations
from tiltmeter.shown_text import shortened, tell_caller
from tiltmeter.training.evaluation_plan import EvaluationPlan
from tiltmeter.training.shards import SameHeldOut, Shards, SlowEvaluations, rank, refuse_sharded

#: Evaluations that took less than so many seconds in all are nothing to talk about.
NOTICEABLE = 10.0
#: Points that a cheaper evaluation could look at.
FEWER = 5000
#: The most numbers of points that go through a model at once where no `chunk` is given, and the fewest points.
NUMBERS, POINTS = 2**15, 256


@dataclass(frozen=True)
class FailedEvaluation:
    """What went wrong at one evaluation: the step, the error in one line, and the measure that failed, if it was one.

    >>> print(FailedEvaluation(40, "ValueError: no spectrum", "sharpness"))
    step 40, sharpness: ValueError: no spectrum
    """

    step: int
    error: str
    measure: str = ""

    def __str__(self) -> str:
        where = f", {self.measure}" if self.measure else ""
        return f"step {self.step}{where}: {self.error}"


class EvaluationCost:
    """What the evaluations of a probe take, beside the training that it watches.

    >>> cost = EvaluationCost(50_000, (30_000, 20_000))
    >>> cost.add(2.0)
    >>> print(cost)
    One evaluation is a forward pass over 50,000 points: 2 s. 5,000 of them would resolve a difference of 2.9 points.

    With `steps`, the length of the training, it says what all evaluations will take that `when` plans.
    """

    def __init__(self, points: int, sizes: tuple[int, ...], when: When | None = None, steps: int | None = None) -> None:
        self.points, self._sizes, self._steps = points, sizes, steps
        self.planned = None if when is None or steps is None else len({*when.steps(steps), steps})
        self.evaluations, self.seconds, self._began, self._told = 0, 0.0, None, False
        self._step = 0

    _began: float | None

    def began(self) -> None:
        """The training has begun, if it had not before."""
        if self._began is None:
            self._began = time.monotonic()

    @property
    def training(self) -> float:
        """Seconds since the training began that no evaluation took."""
        return 0.0 if self._began is None else max(0.0, time.monotonic() - self._began - self.seconds)

    def add(self, seconds: float, quiet: bool = False, step: int = 0) -> None:
        """The evaluation at this step took so long; said once if all take as long as the training, and long enough."""
        self._step = step
        self.evaluations, self.seconds = self.evaluations + 1, self.seconds + seconds
        if not quiet and not self._told and self.evaluations > 2 and self.seconds > max(NOTICEABLE, self.training):
            self._told = True
            tell_caller(f"{self} Fewer held-out points or evaluations cost less.")

    def __str__(self) -> str:
        if not self.evaluations:
            return f"One evaluation is a forward pass over {self.points:,} points."
        text = f"One evaluation is a forward pass over {self.points:,} points: {self.seconds / self.evaluations:.2g} s."
        if self.planned is not None and self._steps and self._step and self.training > 0:
            share = self.planned * self.seconds / self.evaluations / (self.training * self._steps / self._step)
            text += f" {self.planned} are planned: {share:.2g} x the time of the training itself."
        elif self.training > 0:
            share = self.seconds / self.training
            text += f" The {self.evaluations} so far took {share:.2g} x the time of the training itself."
        if self.points > 2 * FEWER and len(self._sizes) > 1:
            parts = [size * FEWER / self.points for size in sorted(self._sizes)[:2]]
            # Two standard errors of a difference of two shares near one half, the least certain ones.
            resolved = 100 * 2.0 * math.sqrt(sum(0.25 / part for part in parts))
            text += f" {FEWER:,} of them would resolve a difference of {resolved:.1f} points."
        return text


class Probe:
    """Evaluates a model on held-out points while it trains: one line in a loop that already exists.

        >>> import numpy as np, torch
        >>> x = np.random.default_rng(0).normal(size=(400, 5)).astype("float32")
        >>> held_out = GroupedData(x, (x[:, 0] > 0).astype(int), np.where(x[:, 1] > 0, "a", "b"))
        >>> model = torch.nn.Linear(5, 1)
        >>> with Probe(model, held_out) as probe:
        ...     for step in range(10):
        ...         probe(step)  # before the update; your own training step goes here
        >>> sorted(probe.trajectory())[:4]
        ['M', 'Q', 'R', 'calibration_gap']

    `probe(step)` stands before the update. Leaving the `with` block without an exception takes one last evaluation, so
    the final model is always seen. Every group gets the curves loss, error (or squared_error for regression), margin,
    confidence and calibration_gap; with two labels also positive_rate, tpr and fpr, with more class_accuracy. Each has
    a standard error `<name>_se`.

    The loss and the decision of every point are also kept, at up to 256 log-spaced evaluations (`Trajectory.points`),
    for `leaders`; `Watch(points=False)` keeps none. If a run is resumed (`resume=True`) at an earlier step than its
    last evaluation, for instance from an older checkpoint, the later evaluations are dropped.

    Whether the model gives scores or probabilities is told by the loss or by what the model ends in, never by values.
    An error inside an evaluation never reaches your loop: it is kept in `failures`, said once, written down with the
    end of the run, and the training goes on. `strict=True` raises it. A wrong argument of `Probe(...)` always raises.

    Evaluations cost at most `budget` of the training. The plan is made from counts, never from clocks, so the same loop
    is evaluated at the same steps on every machine: a step is three passes over its batch, an evaluation one over the
    held-out points (`EvaluationPlan`). The batch is `settings={"batch": 64}`, or that of the first call of the model
    after `probe(step)`. The first and the last evaluation are always taken; which others of `when` were left out is
    in the run. With `settings={"steps": 20000}`, the length of the training, the evaluations that are affordable are
    spread over all of it; else an evaluation is taken as soon as enough steps have gone by. `budget=None` takes all.
    `print(probe.cost)` says what evaluations take.

    The training is bit-identical with and without a probe: weights, buffers, modes, gradients, optimiser, random state
    and the attributes of modules are put back, and points go into the model as copies. What else a forward pass can
    reach, such as lists, objects or global variables, is not touched: if evaluating the model changes it, that is said
    before the first step. Under DistributedDataParallel only rank 0 evaluates and writes. With `Watch(sharded=True)`
    every rank gives its own part of the points and calls the probe equally often; all get the curves of all points,
    rank 0 writes, and `budget` has no effect.

    Args:
        model: Network that is trained in your loop; it is only looked at.
        held_out: Points that judge the model and are never trained on.
        watch: When to evaluate, and which measures to add to the default curves.
        to: Run directory; None: memory.
        loss: Loss to record; None: logistic, cross-entropy or half squared error, whichever fits.
        chunk: Points that pass through the model at once, as 256; None: as many as keep memory low.
        settings: Your own settings, noted in the Origin; None: none.
        seed: Seed that is noted in the Origin; None: not known.
        resume: Whether the run in `to` continues; evaluations after the step of its first call are dropped.
        deliver: Makes the model to look at from the trained one, where that is another one; None: the same.
        strict: Whether an error inside an evaluation is raised instead of kept in `failures`.
        budget: Largest share of the training for evaluations, by count; None: no limit.
    """

    def __init__(
        self,
        model: nn.Module,
        held_out: GroupedData,
        watch: Watch = Watch(),
        to: str | os.PathLike[str] | None = None,
        *,
        loss: Any = None,
        chunk: int | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
        resume: bool = False,
        deliver: Callable[[nn.Module], nn.Module] | None = None,
        strict: bool = False,
        budget: float | None = 0.1,
    ) -> None:
        if settings is not None:
            checked_kind("settings", settings, Mapping, "a mapping of names to values")
        _check(model, held_out, chunk, budget)
        strict, resume = checked_flag("strict", strict), checked_flag("resume", resume)
        if deliver is not None and not callable(deliver):
            raise TypeError(f"`deliver` should be a function of the model, or None. Found {type(deliver).__name__}.")
        self.strict, self._failures = strict, list[FailedEvaluation]()
        self._outer, self.model, self.when = model, bare(model), checked_watch(watch, sharded=True).when
        self.measures: tuple[Measure, ...] = DEFAULTS + tuple(as_measure(measure) for measure in watch.measures)
        refuse_sharded(self.model)
        self.silent = rank() != 0
        self._deliver = deliver
        self._slow = SlowEvaluations()
        self._others = None if watch.sharded else SameHeldOut(held_out)
        self._shards = Shards(held_out) if watch.sharded else None
        whole = None if self._shards is None else self._shards.whole
        check_groups(whole or held_out)
        keep = bool(watch.measures) or watch.entropy
        settings = dict(settings or {})
        steps, batch = (_count(settings.get(name)) for name in ("steps", "batch"))
        # Ranks that evaluate together see batches of their own, and all must come to the same plan.
        share = None if watch.sharded else budget
        self.plan = None if share is None else EvaluationPlan(self.when, share, len(held_out), steps, batch)
        chunk = _chunk(held_out) if chunk is None else chunk
        self.cost = EvaluationCost(len(held_out), tuple(held_out.sizes.values()), self.when, steps)
        with changes_told(self.model) as changed:
            self._answers = Answers(self.model, held_out, loss, watch.decide, watch.read, chunk, keep, whole)
        held_out = whole or held_out
        loss_used = self._answers.loss.definition
        settings = {"model": describe(self.model), "loss": loss_used, "when": self.when.to_json(), **settings}
        seeds = () if seed is None else (seed,)
        origin = Origin("training", problem={"held_out": held_out.to_json()}, settings=settings, seeds=seeds)
        self._recorder = Recorder(
            None if self.silent else to, clock="step", origin=origin, resume=resume and not self.silent
        )
        self._keeper = PointKeeper(held_out, entropy=watch.entropy) if watch.points else None
        self._resumed = resume
        self._looked, self._asks = bool(changed), False
        #: Whether each evaluation is on the disk before a checkpoint of the user's can be, so that a resumed run has no
        #: hole after a power cut. `train` syncs before its own checkpoints instead.
        self.sync_each = True
        self._step: int | None = None
        self._next, self._steps_to_come = 0, StepsToCome(self.when)
        self._seen: tuple[tuple[int, int], ...] | None = None
        self._closed = False
        self.diverged = False

    def __call__(self, step: int) -> None:
        """Evaluate the model after `step` updates, if `when` says so."""
        if type(step) is int and self._step is not None and self._step < step < self._next:
            self._step = step  # most steps: nothing is asked before the next one that `when` chooses
            return
        if self._resumed and not self.silent:
            self._refuse_missing(step)
        with self._watched(step):
            self._called(step)

    def _called(self, step: int) -> None:
        if self._step is not None and step < self._step:
            raise ValueError(
                f"`step` should count updates over the whole training. Found step = {step} after {self._step}."
            )
        self.cost.began()
        chosen = self.when(step)
        if step == self._step:
            return
        if self._resumed:
            self._take_up(int(step))
        self._step = int(step)
        if chosen and self._wanted(self._step):
            if self.plan is None or self.plan.takes(self._step, self._recorder.evaluations):
                self._evaluate(self._step)
            else:
                self._recorder.leave_out(self._step, self.plan.batch)
        self._see_batch()
        self._next = self._steps_to_come.after(self._step)

    def _see_batch(self) -> None:
        """Ask the next training pass of the model how many points it takes, if the plan needs to know.

        Compiled code would be compiled anew for a hook: there the batch is what `settings` say, or a common one."""
        if self.plan is None or self.plan.batch is not None or self._asks or self.silent:
            return
        self._asks = True
        if _is_compiled(self._outer):
            return
        plan = self.plan

        def see(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:  # noqa: ARG001
            if torch.is_grad_enabled():
                sizes = (len(one) for one in _tensors_of((given, named)) if one.ndim)
                plan.batch = next(sizes, None)
                handle.remove()

        handle = self._outer.register_forward_pre_hook(see, with_kwargs=True)

    @property
    def failures(self) -> tuple[FailedEvaluation, ...]:
        """The errors inside evaluations, in order; with `strict=True` there are none, since they are raised."""
        return tuple(self._failures)

    def evaluate(self, step: int, last: bool = False) -> None:
        """Evaluate now, whatever `when` says; skip a step that is already recorded (in a resumed run).

        A measure with its own `when` (`Sometimes`) is taken only at its own steps and at the `last` evaluation. A
        measure that fails is left out of this evaluation; once the loss is NaN, without a word."""
        with self._watched(step):
            if self._wanted(step):
                self._evaluate(step, last)

    @contextmanager
    def _watched(self, step: object, measure: str = "") -> Iterator[None]:
        """Inside, an error is kept and said once instead of raised, unless the probe is strict."""
        try:
            yield
        except Exception as error:
            if self.strict:
                raise
            number = int(step) if isinstance(step, (int, float, np.number)) else -1
            text = shortened(f"{type(error).__name__}: {error}").rstrip(".")
            self._failures.append(FailedEvaluation(number, text, measure))
            if len(self._failures) == 1:
                what = f"The measure {measure!r} failed" if measure else "The evaluation failed"
                tell_caller(
                    f"{what} at step {number}: {text}. The training goes on; this is said once. `probe.failures` "
                    "lists what failed, and Probe(..., strict=True) raises."
                )

    def _evaluate(self, step: int, last: bool = False) -> None:
        start = time.monotonic()
        if self._others is not None:
            self._others.check()
        readings: dict[str, Any] = {}
        # Twice before the first step it is asked what evaluating changes: here too all points pass.
        look = untouched if self._looked else changes_told
        self._looked = True
        with look(self.model):  # measures too: a user's may draw random numbers
            snapshot = self._snapshot(step)
            for measure in self.measures:
                chosen = getattr(measure, "when", None)
                if isinstance(chosen, When) and not (last or chosen(step)):
                    continue
                with self._watched(step, "" if measure in DEFAULTS else _name_of(measure)):
                    try:
                        curves = measure(snapshot)
                    except (ArithmeticError, RuntimeError, ValueError):
                        # A measure may fail on a model whose outputs are NaN; the training goes on.
                        if _finite(readings):
                            raise
                        continue
                    twice = [name for name in curves if name in readings]
                    if twice:
                        raise ValueError(f"Two measures give a curve {twice[0]!r}: rename one.")
                    readings.update(curves)
            points = {} if self._keeper is None else self._keeper(snapshot, step, last)
        self._recorder.append(step, readings, points)
        if self.sync_each:
            self.sync()
        self._seen = versions(self.model)
        self._slow.check(time.monotonic() - start)
        # `train` and whoever debugs are strict, and choose the evaluations themselves.
        self.cost.add(time.monotonic() - start, quiet=self.strict, step=step)
        if not self.diverged and not _finite(readings):
            self.diverged = True
            self._recorder.diverged(float(step))

    def _wanted(self, step: int) -> bool:
        """Whether this process looks at this step; with parts of the points, all do or none."""
        if self._shards is not None:
            return self._shards.agree(step, self.last_step)
        return not self.silent and (self.last_step is None or step > self.last_step)

    def _snapshot(self, step: int) -> Snapshot:
        if self._shards is None:
            return self._answers.snapshot(self._shown(), step)
        self._shards.share_buffers(self.model)
        scores = self._shards.gathered(self._answers.own_scores(self._shown()))
        return self._answers.assemble([(0, scores)], step=step)

    @property
    def loss(self) -> Any:
        """Return the loss to record as given, or the one that fits a model that returns probabilities."""
        return self._answers.given

    @property
    def last_step(self) -> int | None:
        """The step of the last evaluation, None before the first."""
        last = self._recorder.last_time
        return None if last is None else int(last)

    def sync(self) -> None:
        """Have every evaluation so far on the disk."""
        self._recorder.sync()

    @property
    def next_step(self) -> int:
        """The first step whose evaluation is neither recorded nor accepted as missing."""
        return self._recorder.next_step

    @property
    def place(self) -> Path | None:
        """The run directory, None for a run in memory or on another rank than 0."""
        return self._recorder.path

    def snapshot(self) -> Snapshot:
        """What the model answers now, point by point."""
        with untouched(self.model):
            return self._answers.snapshot(self._shown())

    def trajectory(self) -> Trajectory:
        """What is recorded so far; on other ranks than 0, nothing."""
        return self._recorder.trajectory()

    def close(self) -> None:
        """Take the last evaluation and mark the run as finished. Closing twice does nothing."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and not self._closed:
            with self._watched(self._step or 0), self._recorder if self.strict else nullcontext():
                self._last_evaluation()
        with self._watched(self._step or 0):
            if error is None:
                self._recorder.close(self._account())
            else:
                self._recorder.__exit__(kind, error, trace)
        self._closed = True

    def _account(self) -> str | None:
        """What failed, in one line for the end of the run; None if nothing did."""
        if not self._failures:
            return None
        count = len(self._failures)
        return f"{count} evaluation{'' if count == 1 else 's'} failed, the first at {self._failures[0]}"

    def _shown(self) -> nn.Module:
        return self.model if self._deliver is None else self._deliver(self.model)

    def _refuse_missing(self, step: int) -> None:
        """Raise a ValueError if the training goes on behind evaluations that were lost."""
        first = self.next_step
        planned = [one for one in self.when.steps(step - 1) if one >= first] if step > first else []
        if self.plan is not None:
            self.plan.batch = self.plan.batch or self._recorder.batch_of_plan
            planned = self.plan.taken_of(planned, self._recorder.evaluations)
        missing = missing_evaluations(planned)
        if missing:
            raise ValueError(
                f"The training goes on at step {step:,}, and {missing} in {self.place}. Go on from an older checkpoint "
                f"or from the first step, or accept what is missing with "
                f"`tm.record.accept_missing({str(self.place)!r}, until={step})`."
            )

    def _take_up(self, step: int) -> None:
        """Drop the evaluations after the step at which a resumed training continues."""
        self._resumed = False
        last = self.last_step
        if last is not None and step < last and not self.silent:
            self._recorder.rewind(step)
            tell_caller(
                f"The run goes on at step {step}, before its last evaluation at step {last}: evaluations after step "
                f"{step} are dropped."
            )

    def _last_evaluation(self) -> None:
        step = 0
        if self._step is not None:
            if self._seen == versions(self.model):
                return  # there was no update since an evaluation, which was the last
            step = self._step + 1  # the last call was before an update
        if self._wanted(step):
            self._evaluate(step, last=True)
            self._tell_what_was_left_out(step)

    def _tell_what_was_left_out(self, steps: int) -> None:
        """Said once, at the end, where the two evaluations that are always taken exceed the budget."""
        if (
            self.plan is not None
            and steps
            and self._recorder.left_out
            and 2 * self.plan.cost > self.plan.budget * steps
        ):
            share = 2 * self.plan.cost / steps
            tell_caller(
                f"The first and the last evaluation alone are about {share:.2g} x the training, by count; the other "
                f"{self._recorder.left_out:,} that were planned were left out. Fewer held-out points cost less, and "
                "Probe(..., budget=None) takes all."
            )


def _is_compiled(model: nn.Module) -> bool:
    """Whether this module runs as compiled code: by itself, or inside a wrapper, of which it knows nothing."""
    if hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None:
        return True
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = {} if frames is None else getattr(frames, "cached_backends", {0: True})
    if not any(one is not None for one in backends.values()):
        return False  # nothing was compiled in this process
    return any(
        (isinstance(one, dict) and one.get("_orig_mod") is model) or type(one).__name__ == "OptimizedModule"
        for one in gc.get_referrers(model)
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _chunk(held_out: GroupedData) -> int:
    """How many points go through the model in one pass: more where points are small, since every pass costs time."""
    numbers = (
        math.prod(held_out.x.shape[1:]) if isinstance(held_out.x, np.ndarray) or is_tensor(held_out.x) else NUMBERS
    )
    return max(POINTS, NUMBERS // max(1, numbers))


def _tensors_of(given: Any) -> Iterator[torch.Tensor]:
    """The tensors in what a model is called with, in order."""
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (tuple, list, Mapping)):
        for part in given.values() if isinstance(given, Mapping) else given:
            yield from _tensors_of(part)


def _finite(readings: Mapping[str, Any]) -> bool:
    # Few groups: NumPy would take five times as long.
    return "loss" not in readings or all(map(math.isfinite, readings["loss"].values.ravel().tolist()))


def _name_of(measure: Any) -> str:
    return str(getattr(measure, "name", None) or getattr(measure, "__name__", None) or type(measure).__name__)


def as_measure(measure: Callable[..., Any]) -> Measure:
    """A function of a snapshot as it is; a user's f(y_true, y_score) wrapped."""
    if isinstance(measure, GroupMetric) or not callable(measure):
        return measure if callable(measure) else GroupMetric(measure)
    try:
        places = inspect.signature(measure).parameters.values()
    except (ValueError, TypeError):  # some compiled functions have no signature
        return GroupMetric(measure)
    wanted = [place for place in places if place.default is place.empty and place.kind not in (2, 3, 4)]
    return measure if len(wanted) == 1 else GroupMetric(measure)


def _check(model: object, held_out: object, chunk: object, budget: float | None) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"`model` should be a torch.nn.Module. Found {type(model).__name__}.")
    if not isinstance(held_out, GroupedData):
        raise TypeError(
            f"`held_out` should be GroupedData, which says who belongs to which group. Found {type(held_out).__name__}."
        )
    if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1):
        raise ValueError(f"`chunk` should be a positive number of points. Found chunk = {chunk!r}.")
    number = isinstance(budget, (int, float)) and not isinstance(budget, bool)
    if budget is not None and not (number and 0 < budget < math.inf):
        raise ValueError(f"`budget` should be a positive share of the training. Found budget = {budget!r}.")
    if any(is_lazy(parameter) for parameter in model.parameters()):
        raise ValueError("`model` has lazy parameters that are not initialised yet: run one batch through it first.")


def check_groups(held_out: GroupedData) -> None:
    """Refuse held-out data with a group that has no points."""
    mass = np.bincount(held_out.codes, held_out.weights, len(held_out.groups))
    for group, total in zip(held_out.groups, mass, strict=True):
        if not total > 0:
            raise ValueError(f"`held_out` should have points of every group. Found none in group {group!r}.")
