"""Methods: how a forecast is computed, as frozen values with the same few functions.

`refusal(task)` is a sentence that says why a method cannot forecast a task, or None. `cost(task)` are the seconds that
it would take, timed. `promise(task)` is what it will promise if all goes well. `forecast(task, means)` does it. A
method stands in the Origin of its forecast; given again as `method=`, it repeats the forecast to the bit. `words(task)`
says it in plain words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from tiltmeter.forecast.bands import Promise
    from tiltmeter.forecast.policy import Choice
    from tiltmeter.forecast.rehearsal import Means
    from tiltmeter.forecast.task import ForecastTask
    from tiltmeter.forecast.twin.twins import ResumeState
    from tiltmeter.record import Trajectory

__all__ = ["Kernel", "Linear", "Pilot", "Preview", "Rehearsal", "Twin", "chosen"]


class Method(Protocol):
    """What every method of forecasting has."""

    def words(self, task: ForecastTask) -> str: ...

    def refusal(self, task: ForecastTask) -> str | None: ...

    def cost(self, task: ForecastTask) -> float: ...

    def promise(self, task: ForecastTask) -> Promise | None: ...

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory: ...


@dataclass(frozen=True)
class Rehearsal:
    """The user's own training, run on `copies` of the network: any architecture, optimiser and intervention.

    >>> Rehearsal(copies=5)
    Rehearsal(copies=5, vary='order', seed=0)

    With `vary="order"` the copies have the network's own initial weights and other batch orders; with "weights" also
    other initial weights, which needs a function that makes the network. These are two questions: what becomes of
    these weights, and what becomes of any. If the settings give an `order`, one rehearsal is the run of this `seed`.

    Args:
        copies: Networks that are trained.
        vary: "order": other batch orders from the same initial weights; "weights": other initial weights too.
        seed: Seed of the batch orders and initial weights of the copies.
    """

    copies: int = 3
    vary: Literal["order", "weights"] = "order"
    seed: int = 0
    #: Whether it trains narrow copies, which say what to try first and no more.
    narrow: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_integers(self, copies=1, seed=0)
        if self.vary not in ("order", "weights"):
            raise ValueError(f'`vary` should be "order" or "weights". Found vary = {self.vary!r}.')

    def words(self, task: ForecastTask) -> str:
        if task.order_known and self.vary == "order":
            return "One rehearsal with the run's own batches"
        number = "One rehearsal" if self.copies == 1 else f"{self.copies} rehearsals"
        return f"{number} with other {'batch orders' if self.vary == 'order' else 'initial weights and batch orders'}"

    def refusal(self, task: ForecastTask) -> str | None:
        if self.vary == "weights" and task.make is None:
            return (
                "Rehearsals from other initial weights need a function that makes the network, as lambda: Network(). "
                "Found a network."
            )
        return _training_refusal(task)

    def cost(self, task: ForecastTask) -> float:
        copies = 1 if task.order_known and self.vary == "order" else self.copies
        return copies * task.price.training

    def promise(self, task: ForecastTask) -> Promise | None:
        from tiltmeter.forecast.rehearsal import rehearsal_promise

        exact = task.order_known and self.vary == "order"
        return rehearsal_promise(task, 1 if exact else self.copies, exact)

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory:
        from tiltmeter.forecast.rehearsal import Means, forecast_by_rehearsals
        from tiltmeter.forecast.result import finished

        return finished(task, self, *forecast_by_rehearsals(task, self.copies, self.vary, self.seed, means or Means()))

    def rest(self, task: ForecastTask, state: ResumeState) -> Trajectory:
        """The rest of a training from where it stands."""
        from tiltmeter.forecast.rehearsal import rest_promise
        from tiltmeter.forecast.result import finished
        from tiltmeter.forecast.twin.continued import rest_by_copies

        runs, account = rest_by_copies(task, 1.0, self.copies, self.seed, state)
        return finished(task, self, runs, rest_promise(task, self.copies, task.order_known), account)


@dataclass(frozen=True)
class Linear:
    """The training of a linear head on a frozen backbone, with the features of the backbone computed once: exact.

    >>> Linear()
    Linear(copies=5, seed=0)

    Only for networks whose one layer that learns is a Linear at the end, without dropout or batch normalisation before
    it.

    Args:
        copies: Batch orders that are trained where the settings give none.
        seed: Seed of the batch orders.
    """

    copies: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        _check_integers(self, copies=1, seed=0)

    def words(self, task: ForecastTask) -> str:  # noqa: ARG002
        return "A linear head, followed exactly"

    def refusal(self, task: ForecastTask) -> str | None:
        from tiltmeter.forecast.linear_head import head_refusal

        return head_refusal(task) or _training_refusal(task)

    def cost(self, task: ForecastTask) -> float:
        from tiltmeter.forecast.linear_head import head_cost

        return head_cost(task, 1 if task.order_known else self.copies)

    def promise(self, task: ForecastTask) -> Promise | None:
        from tiltmeter.forecast.rehearsal import rehearsal_promise

        return rehearsal_promise(task, 1 if task.order_known else self.copies, task.order_known)

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory:
        from tiltmeter.forecast.linear_head import forecast_by_head
        from tiltmeter.forecast.rehearsal import Means
        from tiltmeter.forecast.result import finished

        return finished(task, self, *forecast_by_head(task, self.copies, self.seed, means or Means()))


@dataclass(frozen=True)
class Twin:
    """Narrow copies cut from the user's network and trained in its place: features, any optimiser, the run's batches.

    >>> Twin(share=1 / 4)
    Twin(share=0.25, count=1, seed=0)

    A twin keeps `share` of the units of every hidden dimension (at least 8, and two heads of attention), and learns as
    the wide network does by the maximal-update rule; `count` of them are trained. Units are chosen to represent all of
    them; `seed` varies the choice. Its answer is f0(x) + twin(x) - twin0(x), f0 being the untrained network. With
    `share=1` it is the training itself.

    Args:
        share: Share of the units of every hidden layer that a copy keeps.
        count: Number of copies.
        seed: Seed of the choice of units.
    """

    share: float = 1 / 8
    count: int = 1
    seed: int = 0
    narrow: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not isinstance(self.share, (int, float)) or not 0 < self.share <= 1:
            raise ValueError(f"`share` should be a share above 0, up to 1. Found share = {self.share!r}.")
        _check_integers(self, count=1, seed=0)

    def words(self, task: ForecastTask | None = None) -> str:  # noqa: ARG002
        number = "One narrow copy" if self.count == 1 else f"{self.count} narrow copies"
        return f"{number} with {self.share:.3g} of the width"

    def refusal(self, task: ForecastTask) -> str | None:
        from tiltmeter.forecast.twin.forecasts_by_twins import twin_refusal

        return twin_refusal(task.in_one_array, self)

    def cost(self, task: ForecastTask) -> float:
        from tiltmeter.forecast.twin.forecasts_by_twins import twin_cost

        return twin_cost(task.in_one_array, self)

    def promise(self, task: ForecastTask) -> Promise | None:
        from tiltmeter.forecast.twin.forecasts_by_twins import twin_promise

        return twin_promise(task, self)

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory:
        from tiltmeter.forecast.result import finished
        from tiltmeter.forecast.twin.forecasts_by_twins import promised_twins

        return finished(task, self, *promised_twins(task.in_one_array, self, means is None or means.progress))

    def rest(self, task: ForecastTask, state: ResumeState) -> Trajectory:
        """The rest of a training from where it stands."""
        from tiltmeter.forecast.rehearsal import rest_promise
        from tiltmeter.forecast.result import finished
        from tiltmeter.forecast.twin.continued import rest_by_copies

        if self.share < 1.0 and (refused := self.refusal(task)) is not None:
            raise ValueError(refused)
        runs, account = rest_by_copies(
            task.in_one_array if self.share < 1.0 else task, self.share, self.count, self.seed, state
        )
        exact = task.order_known and not account["cut"]
        return finished(task, self, runs, rest_promise(task, self.count, exact), account)


@dataclass(frozen=True)
class Pilot:
    """The first `steps` of the training, on a copy: what can be had when everything else is too dear.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(400, 5))
    >>> data = tm.GroupedData(x, np.sign(x[:, 0]), ["a", "b"] * 200)
    >>> recipe = tm.Recipe(lr=0.1, steps=1000)
    >>> ahead = tm.forecast(torch.nn.Linear(5, 1), *data.split(0.5), recipe, method=Pilot(steps=20))
    >>> ahead["loss"].time.values[-1].item()  # of 1000
    20

    It promises nothing about the end.

    Args:
        steps: Steps that are trained.
        seed: Seed of the batches.
    """

    steps: int
    seed: int = 0

    def __post_init__(self) -> None:
        _check_integers(self, steps=1, seed=0)

    def words(self, task: ForecastTask) -> str:
        return f"The first {self.steps:,} of {task.steps:,} steps"

    def refusal(self, task: ForecastTask) -> str | None:
        return _training_refusal(task)

    def cost(self, task: ForecastTask) -> float:
        evaluations = sum(step <= self.steps for step in task.evaluations)
        return min(1.0, self.steps / task.steps) * task.price.loop + evaluations * task.price.evaluation

    def promise(self, task: ForecastTask) -> Promise | None:  # noqa: ARG002
        return None

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory:
        from tiltmeter.forecast.rehearsal import Means, forecast_by_pilot
        from tiltmeter.forecast.result import finished

        return finished(task, self, *forecast_by_pilot(task, self.steps, self.seed, means or Means()))


@dataclass(frozen=True)
class Preview:
    """The theory of the table, where a copy of the network is too dear to train; its clock is progress.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(400, 5))
    >>> data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), ["a", "b"] * 200)
    >>> recipe = tm.Recipe(lr=0.1, steps=1000)
    >>> ahead = tm.forecast(torch.nn.Linear(5, 1), *data.split(0.5), recipe, method=Preview(), progress=False)
    >>> ahead.clock
    'progress'

    It promises the gaps of rates at the end, as `tm.preview` does. Points that are not the rows of a table,
    interventions, and tables on which the preview does not hold are refused.
    """

    def words(self, task: ForecastTask) -> str:  # noqa: ARG002
        return "The preview of the table; your network is not trained"

    def refusal(self, task: ForecastTask) -> str | None:
        try:
            view = task.view
        except (TypeError, ValueError) as error:
            return str(error)
        return None if view.doubt.holds else f"The preview does not hold for networks: {view.doubt.why}."

    def cost(self, task: ForecastTask) -> float:
        begin = task.clock()
        self.refusal(task)  # the preview is solved once for a task
        return max(task.clock() - begin, 0.05)

    def promise(self, task: ForecastTask) -> Promise | None:
        from tiltmeter.forecast.bands import Promise

        if self.refusal(task) is not None or task.view.run.origin.settings["promise"] is None:
            return None
        return Promise("calibrated", 1.0, "Computed from the table, 90 % band for the end of the training")

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory:  # noqa: ARG002
        from tiltmeter.forecast.result import previewed

        return previewed(task, self)


@dataclass(frozen=True)
class Kernel:
    """The exact linearisation of the network at its initial weights, from the tangent kernel of `sample` points.

    >>> Kernel(sample=500)
    Kernel(sample=500, seed=0)

    It knows no features that the network learns and promises nothing: take it for theory, or `tm.tangent` for many
    what-ifs.

    Args:
        sample: Training points that the kernel uses.
        seed: Seed that chooses them.
    """

    sample: int = 2500
    seed: int = 0

    def words(self, task: ForecastTask) -> str:  # noqa: ARG002
        return "The linearised network"

    def refusal(self, task: ForecastTask) -> str | None:
        from tiltmeter.forecast.kernel.forecast_by_kernel import kernel_refusal

        return kernel_refusal(task)

    def cost(self, task: ForecastTask) -> float:
        from tiltmeter.forecast.kernel.forecast_by_kernel import kernel_cost

        return kernel_cost(task, self)

    def promise(self, task: ForecastTask) -> Promise | None:  # noqa: ARG002
        return None

    def forecast(self, task: ForecastTask, means: Means | None = None) -> Trajectory:
        from tiltmeter.forecast.kernel.forecast_by_kernel import forecast_by_kernel

        return forecast_by_kernel(task, self, means is None or means.progress)


#: Every method by the name under which it stands in an Origin.
METHODS: dict[str, type[Any]] = {kind.__name__: kind for kind in (Rehearsal, Linear, Twin, Pilot, Preview, Kernel)}


def method_to_json(method: Any) -> dict[str, Any]:
    """A method by its name and fields."""
    return {"name": type(method).__name__, **asdict(method)}


def method_from_json(value: Mapping[str, Any]) -> Any:
    """The method that an Origin names: `forecast(..., method=that)` repeats the forecast.

    >>> method_from_json(method_to_json(Twin(share=0.5)))
    Twin(share=0.5, count=1, seed=0)

    Args:
        value: What an Origin holds as its method.
    """
    fields = {key: one for key, one in value.items() if key != "name"}
    return METHODS[value["name"]](**fields)


def checked_method(method: Any) -> Any:
    """Return the method, or raise an error that shows what one looks like."""
    if isinstance(method, type) or not all(hasattr(method, name) for name in ("refusal", "cost", "forecast")):
        given = f"the class {method.__name__}: call it" if isinstance(method, type) else type(method).__name__
        raise TypeError(f"`method` should say how to forecast, as tm.methods.Rehearsal(). Found {given}.")
    return method


def chosen(
    model: Any,
    train: Any,
    held_out: Any,
    recipe: Any,
    budget: float | None = None,
    *,
    watch: Any = None,
    clock: Callable[[], float] = time.process_time,
) -> Choice:
    """What `forecast` would do with this budget (CPU seconds), what it would cost and promise; nothing is forecast.

    >>> import numpy as np, torch, tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(400, 5))
    >>> data = tm.GroupedData(x, np.sign(x[:, 0]), ["a", "b"] * 200)
    >>> choice = chosen(torch.nn.Linear(5, 1), *data.split(0.5), tm.Recipe(lr=0.1, steps=20))
    >>> choice.method, choice.promise
    (Linear(copies=5, seed=0), 'the gaps between groups over all evaluations')

    A few real steps are taken on a copy to time the training.

    Args:
        model: Network to forecast; it is not changed.
        train: Points to train on, with their groups.
        held_out: Points that judge the model and are never trained on.
        recipe: Training settings: optimiser, learning rate, length, batches, loss.
        budget: CPU seconds to spend; None: a minute, or 0.6 of the training where that is more.
        watch: When to evaluate; None: as `forecast` does.
        clock: Reads the seconds that the training is timed by.
    """
    from tiltmeter.forecast.policy import choose
    from tiltmeter.forecast.task import forecast_task

    return choose(forecast_task(model, train, held_out, recipe, watch, clock=clock), budget)


def _training_refusal(task: ForecastTask) -> str | None:
    """Why a training cannot be run; None if it can."""
    from tiltmeter.training.prepared import check_training

    try:
        check_training(task.model, task.train, task.held_out, task.recipe, task.watch, None)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


def _check_integers(method: object, **least: int) -> None:
    for name, lowest in least.items():
        value = getattr(method, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
            raise ValueError(f"`{name}` should be an integer from {lowest}. Found {name} = {value!r}.")
