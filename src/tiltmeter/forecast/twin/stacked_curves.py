"""StackedCurves: what is seen of a stack of twins at every look, recipe by recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tiltmeter.forecast.curves import forecast_measures
from tiltmeter.forecast.gathered_looks import KEPT, GatheredLooks
from tiltmeter.forecast.twin.places import by_place
from tiltmeter.forecast.twin.recipe_block import RecipeBlock
from tiltmeter.forecast.twin.shifted_stack import ShiftedStack
from tiltmeter.forecast.twin.twin_task import TwinTask
from tiltmeter.measures.answers import Answers
from tiltmeter.record import Origin, Recorder, Trajectory
from tiltmeter.training.point_keeper import PointKeeper
from tiltmeter.training.stacked_observations import StackedObservations


class Observed(NamedTuple):
    """How the members of one recipe are looked at, and how their curves are read at the end."""

    look: Callable[[int], bool]
    read: Callable[[], Trajectory]


class StackedCurves:
    """Looks at the members of every recipe by themselves, as long as one of them has not diverged.

    `going` are the numbers of the recipes of which that is so. Scores are kept and read together at the end where
    nothing else is needed and they fit in memory.
    """

    def __init__(
        self,
        task: TwinTask,
        answers: Answers,
        stack: ShiftedStack,
        blocks: Sequence[RecipeBlock],
        looks: Sequence[int],
    ) -> None:
        fits = len(looks) * len(task.look) * stack.runs * answers.task.outputs <= KEPT
        self._observed = [
            _gathered(task, answers, own)
            if fits and not task.watch.points and block.pull is None
            else _recorded(task, answers, own, block, looks[-1])
            for own, block in ((stack.of_recipe(number), block) for number, block in enumerate(blocks))
        ]
        self.going = list(range(len(blocks)))

    def __call__(self, step: int) -> bool:
        """Look after `step` updates; return whether any member goes on."""
        self.going = [number for number in self.going if self._observed[number].look(step)]
        return bool(self.going)

    def trajectories(self) -> list[Trajectory]:
        """The curves of every recipe."""
        return [one.read() for one in self._observed]


def _gathered(task: TwinTask, answers: Answers, own: ShiftedStack) -> Observed:
    looks = GatheredLooks(lambda: own.look_scores(answers.chunk))
    return Observed(looks, lambda: looks.trajectory(answers, forecast_measures(task.watch), _seeds(own), _origin(own)))


def _recorded(task: TwinTask, answers: Answers, own: ShiftedStack, block: RecipeBlock, end: int) -> Observed:
    recorder = Recorder(None, clock="step", origin=_origin(own))
    keeper = PointKeeper(task.look, _seeds(own), end=end) if task.watch.points else None
    places = torch.as_tensor(by_place(task.train, task.look)[1].x, device=task.x[1].device)
    members: Any = own  # a stack in all that is asked of it
    measures = forecast_measures(task.watch)
    look = StackedObservations(members, answers, measures, places, _seeds(own), recorder, keeper, block.pull)
    return Observed(look, recorder.trajectory)


def _seeds(own: ShiftedStack) -> dict[str, np.ndarray]:
    return {"seed": np.arange(own.runs)} if own.runs > 1 else {}


def _origin(own: ShiftedStack) -> Origin:
    return Origin("forecast", seeds=tuple(range(own.runs)) if own.runs > 1 else ())
