"""simulate: many runs of SGD at finite d, with the exact distribution."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter.arguments import checked_names, checked_seeds
from tiltmeter.interventions.group_intervention import GroupIntervention
from tiltmeter.progress import Progress
from tiltmeter.record import Recorder, save
from tiltmeter.record.origin import Origin
from tiltmeter.record.trajectory import Clock, LazyCurves, Trajectory
from tiltmeter.theory.population.labelled_curves import chosen_names
from tiltmeter.theory.problem.class_mixture import ClassMixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.full_batch import Descent, Flow
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.optimisers import StudentOptimiser, plain_sgd
from tiltmeter.theory.problem.students import Linear, Network, Student, checked_student, refuse_softmax
from tiltmeter.theory.problem.times import checked_times
from tiltmeter.theory.simulation.chain import Chain
from tiltmeter.theory.simulation.direct_method import Direct
from tiltmeter.theory.simulation.full_batch import full_batch_evaluations
from tiltmeter.theory.simulation.run import Method, Observation, Run, SimulationOptions, curves_of, stack_observations
from tiltmeter.theory.simulation.setting import StepSettings, check_size, setting
from tiltmeter.theory.simulation.simulate_classes import ClassSimulation

#: Seconds for a stretch of steps: between stretches, interrupts are noticed and progress is reported.
STRETCH = 0.3
#: The most steps per stretch, which bounds the memory for schedules.
MOST_STEPS = 65536
#: The scatter of the losses of single points, about: half squared errors of labels -1 and 1.
TYPICAL_SCATTER = 0.5
#: In larger dimensions the number of steps would no longer be exact.
MOST_DIMENSIONS = 10**15


def simulate(
    problem: Mixture | ClassMixture,
    sgd: StudentOptimiser | Flow | Descent,
    times: Any,
    d: int | None = None,
    seeds: int | Sequence[int] = 1,
    student: Student = Linear(),
    method: Method = Chain(),
    data: Fixed | None = None,
    curves: Iterable[str] | None = None,
    to: str | os.PathLike[str] | None = None,
) -> Trajectory:
    """Simulate SGD in d dimensions, one run per seed; the curves are those of `predict` with a dimension `seed`.

    >>> from tiltmeter import SGD, teacher_mixture
    >>> problem = teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
    >>> runs = simulate(problem, SGD(lr=0.1), [1.0, 10.0], d=100, seeds=8, curves=("loss", "M"))
    >>> runs
    <Trajectory simulation, clock t, 2 curves>
      loss  (time: 2, group: 2, seed: 8)  time 1 .. 10
      M     (time: 2, group: 2, seed: 8)  time 1 .. 10

    Time t = steps/d is recorded after whole steps: times are rounded to multiples of 1/d, and equal ones are merged
    with a warning.

    `method` says how to calculate. `Chain()` follows only the overlaps: its curves have exactly the distribution of the
    d-dimensional run, at a cost per step that does not depend on d. `Direct()` is the plain run in d dimensions; it
    also takes `Adam`, `AdamW`, `SignSGD` and `Fixed` data. Both take the number of `threads` (default: all cores)
    and `progress=False`. `Flow` and `Descent` learn from `Fixed` data, with the time of `predict`. A seed gives the
    same run whatever the number of threads and of other seeds.

    With `to`, every evaluation is written to that run directory at once, so that Ctrl-C keeps what is done. A
    `ClassMixture` has the curves of its theory; `error`, `class_accuracy` and `confusion` must be named in `curves`. A
    seed that diverges is reported in `diverged`, with its time, and is NaN from then on.

    Args:
        problem: Groups with their shares, variances, means and labelling rules.
        sgd: How the student is trained: learning rate, batch, start, weights.
        times: Times of the evaluations, t = steps / d; rounded to whole steps.
        d: Number of dimensions of an input.
        seeds: How many runs (seeds 0, 1, 2, ...), or which seeds.
        student: Model that learns, one of `tm.theory.students`.
        method: `Chain()` follows only the overlaps; `Direct()` simulates all d coordinates.
        data: A training set that is used again and again; None: fresh examples at every step.
        curves: Curves to record; None: the default ones.
        to: Run directory to which every evaluation is written at once; None: memory.
    """
    if isinstance(method, type) or not callable(getattr(method, "begin", None)):
        raise TypeError(f"`method` should be Chain() or Direct(). Found {type(method).__name__}.")
    if curves is not None:
        curves = checked_names("curves", curves)
    size, labels, student = checked_dimension(d), checked_seeds(seeds), checked_student(student)
    options = SimulationOptions(student, method, data, size, labels, curves)
    if isinstance(sgd, (Flow, Descent)):
        if isinstance(problem, ClassMixture):
            raise ValueError("Several classes are simulated with SGD only. Train on `samples` with `train`.")
        refuse_softmax(student)
        return _full_batch(problem, sgd, times, options, to)
    steps = whole_steps(checked_times(times), size)
    _check_data(data)
    run, label, pace = _begin(problem, sgd, steps, options)
    origin = Origin("simulation", problem.to_json(), options.described(sgd), labels)
    evaluations: list[Any] = []
    with ExitStack() as stack:
        recorder = None if to is None else stack.enter_context(Recorder(to, clock="t", origin=origin))
        last = int(steps[-1])
        told = Progress(last, lambda done: f"t = {done / size:.4g} of {last / size:.4g}")
        tell = stack.enter_context(told) if method.progress else None
        notice_interrupt = stack.enter_context(_interrupts_held())
        for evaluation in _evaluations(run, steps, pace, method.threads, tell, notice_interrupt):
            evaluations.append(evaluation)
            if recorder is not None:
                now = label([evaluation], np.zeros(1))
                readings = {name: curve.isel(time=0, drop=True) for name, curve in now.items()}
                recorder.append(float(steps[len(evaluations) - 1] / size), readings)
        diverged = _diverged(run, labels, size)
        if recorder is not None and diverged is not None:
            recorder.diverged(diverged)
    return Trajectory(label(evaluations, steps / size), "t", origin, diverged)


def _begin(
    problem: Mixture | ClassMixture,
    sgd: StudentOptimiser,
    steps: np.ndarray,
    options: SimulationOptions,
) -> tuple[Run, Callable[[list[Any], np.ndarray], LazyCurves], StepSettings]:
    """Return all seeds at their start, the function from evaluations to curves, and the settings of every step."""
    if isinstance(problem, ClassMixture):
        several = ClassSimulation(problem, sgd, options)
        # The chain itself handles loss weights of (group, class) pairs.
        return (
            several.run,
            several.label,
            StepSettings(replace(plain_sgd(sgd), weights=None), problem.groups, options.d),
        )
    refuse_softmax(options.student)
    plain, d, seeds = plain_sgd(sgd), options.d, options.seeds
    chosen = setting(problem, sgd, options.student, options.data, d)
    more = (
        *(("second_layer",) if isinstance(options.student, Network) else ()),
        *(("training_loss", "training_error") if options.data is not None else ()),
        *(("pull",) if plain.law is not None else ()),
    )
    names = chosen_names(options.curves, plain.train_bias, more)
    vectors = 2 * len(problem.groups) + chosen.units if isinstance(options.method, Direct) else 0
    check_size(d, len(seeds), steps, len(names) * len(problem.groups), vectors)
    pace = StepSettings(chosen.sgd, chosen.par.groups, d)
    _warn_of_noise(chosen.law)
    constant = plain.law is not None and chosen.law is None

    def label(evaluations: list[Observation], at: np.ndarray) -> LazyCurves:
        if constant:
            pull = np.tile(pace.pulls(chosen.shares), (len(seeds), 1))
            evaluations = [evaluation.with_pull(pull) for evaluation in evaluations]
        return curves_of(chosen, seeds, stack_observations(evaluations), at, names)

    return options.method.begin(chosen, seeds), label, pace


def _check_data(data: object) -> None:
    if data is None:
        return
    if not isinstance(data, Fixed):
        raise TypeError(f"`data` should be Fixed(samples), or None for fresh examples. Found {data!r}.")
    for number in (data.samples, *(data.flips or {}).values()):
        if isinstance(number, xr.DataArray):
            over = ", ".join(map(str, number.dims))
            raise ValueError(f"`simulate` is for one data set; this one has a grid over {over}. Select one point.")


def _full_batch(
    problem: Mixture,
    training: Flow | Descent,
    times: Any,
    options: SimulationOptions,
    to: str | os.PathLike[str] | None,
) -> Trajectory:
    """Simulate full-batch training, which needs all coordinates, a training set and a linear student."""
    name, data, method = type(training).__name__, options.data, options.method
    d, seeds = options.d, options.seeds
    _check_data(data)
    if data is None:
        raise ValueError(f"{name} needs a training set: pass data=Fixed(samples=...).")
    if not isinstance(method, Direct):
        raise ValueError(f"{name} on a training set has no chain. Use method=Direct().")
    if data.replace:
        raise ValueError(f"`replace` is about batches of SGD; {name} uses all examples at once.")
    if isinstance(options.student, Network):
        raise ValueError(f"{name} is for the linear student. Use SGD for a Network.")
    at = checked_times(times)
    if isinstance(training, Descent) and (at != np.round(at)).any():
        raise ValueError(f"`times` should be whole numbers of steps for Descent. Found {at[at != np.round(at)][0]:g}.")
    chosen = setting(problem, training.plain(), options.student, data, d)
    if d <= chosen.rank:
        raise ValueError(f"`d` should be at least {chosen.rank + 1} here. Found d = {d}.")
    names = chosen_names(options.curves, training.train_bias, ("training_loss", "training_error"))
    evaluations = full_batch_evaluations(chosen, training, seeds, at, method.threads)
    clock: Clock = "step" if isinstance(training, Descent) else "t"
    origin = Origin("simulation", problem.to_json(), options.described(training), seeds)
    gone = np.isnan(evaluations.Q[:, :, 0, 0])
    diverged = None
    if gone.any():
        first = np.where(gone.any(1), at[gone.argmax(1)], np.nan)
        diverged = xr.DataArray(first, dims="seed", coords={"seed": np.asarray(seeds, dtype=np.int64)})
        warnings.warn(
            f"{int(gone.any(1).sum())} of {len(seeds)} seeds diverged. Lower the learning rate.", stacklevel=3
        )
    found = Trajectory(curves_of(chosen, seeds, evaluations, at, names), clock, origin, diverged)
    if to is not None:
        save(found, to)
    return found


def _warn_of_noise(law: GroupIntervention | None) -> None:
    """Say if the pulls of an intervention that reacts strongly to few losses are mostly noise."""
    if law is None or law.gain * TYPICAL_SCATTER <= max(law.memory, 1.0) ** 0.5:
        return
    warnings.warn(
        f"The pulls of this {type(law).__name__} are mostly noise: it reacts {law.gain:g}-fold to losses averaged over "
        f"{law.memory:g} points, so it will not follow its theory. Take a memory well above "
        f"{(law.gain * TYPICAL_SCATTER) ** 2:.0f} points (and well below d), or a smaller reaction. This assumes that "
        f"the losses of single points scatter by about {TYPICAL_SCATTER}.",
        stacklevel=4,
    )


def checked_dimension(d: object) -> int:
    """Return the dimension of the inputs as an integer."""
    if d is None:
        raise TypeError("`simulate` needs d, the dimension of the inputs: simulate(problem, sgd, times, d=500).")
    if isinstance(d, (bool, np.bool_)) or not isinstance(d, (int, np.integer)):
        raise TypeError(f"`d` should be an integer. Found d = {d!r}.")
    if d < 1:
        raise ValueError(f"`d` should be at least 1. Found d = {d}.")
    if d > MOST_DIMENSIONS:
        raise ValueError(f"`d` should be at most {MOST_DIMENSIONS:.0e}. Found d = {Decimal(int(d)).normalize():.3g}.")
    return int(d)


def whole_steps(times: np.ndarray, d: int) -> np.ndarray:
    """Return the steps nearest to the times; times that round to the same step are merged, with a warning."""
    if times[-1] * d >= 2.0**62:
        raise ValueError(f"Times should be below 2^62 steps. Found t = {times[-1]:g} at d = {d:g}.")
    steps = np.unique(np.rint(times * d).astype(np.int64))
    if len(steps) < len(times):
        warnings.warn(
            f"{len(times)} times give {len(steps)} different numbers of steps at d = {d}: time is recorded after whole "
            "steps, and those that coincide are merged.",
            stacklevel=3,
        )
    return steps


@contextmanager
def _interrupts_held() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back, and give the function that lets it through.

    numba clears exceptions while it reads the arguments of a compiled function: an interrupt that arrives just then
    would be lost, or end the simulation with a TypeError of numba's own.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield lambda: None
        return
    waiting: list[tuple[int, Any]] = []

    def notice() -> None:
        if waiting:
            usual(*waiting.pop())

    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield notice
    finally:
        signal.signal(signal.SIGINT, usual)
        notice()


def _evaluations(
    run: Run,
    steps: np.ndarray,
    pace: StepSettings,
    threads: int | None,
    tell: Progress | None,
    notice_interrupt: Callable[[], None],
) -> Iterable[Any]:
    """Advance from evaluation to evaluation, in short stretches that can be interrupted."""
    cost, done = run.cost * len(run.stopped) * 1e-9, 0
    stretch = STRETCH / cost
    for target in steps.tolist():
        while done < target and (run.stopped < 0).any():
            stop = min(target, done + max(1, min(MOST_STEPS, int(stretch))))
            # On a short stretch, threads cost more than they save.
            alone = (stop - done) * cost < 1e-3
            began = time.perf_counter()
            run.advance(done, stop, pace.rates(done, stop), pace.weights(done, stop), 1 if alone else threads)
            took = time.perf_counter() - began
            # Only by factors of two: a single timing is unreliable (compilation, busy machine).
            if took > 2.0 * STRETCH:
                stretch = max(1.0, 0.5 * stretch)
            elif took < 0.5 * STRETCH and stop - done >= int(stretch):
                stretch *= 2.0
            done = stop
            if tell is not None:
                tell(done)
            notice_interrupt()
        done = target
        yield run.evaluate().blanked(run.stopped >= 0)


def _diverged(run: Run, seeds: tuple[int, ...], d: int) -> xr.DataArray | None:
    gone = run.stopped >= 0
    if not gone.any():
        return None
    times = np.where(gone, run.stopped / d, np.nan)
    first = int(np.nanargmin(times))
    warnings.warn(
        f"{int(gone.sum())} of {len(seeds)} seeds diverged, the first seed {seeds[first]} at t = {times[first]:.4g}: "
        "their curves are NaN from then on, and `diverged` has the times. Lower the learning rate.",
        stacklevel=3,
    )
    return xr.DataArray(times, dims="seed", coords={"seed": np.asarray(seeds, dtype=np.int64)})
