"""Price: what a training costs, timed on a copy of the network before anything is paid for."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import torch

from tiltmeter.interventions.cost_of_interventions import cost_of
from tiltmeter.measures.answers import Answers
from tiltmeter.modules.forward import scores
from tiltmeter.modules.untouched import put_back, streams, untouched
from tiltmeter.threads import one_thread, small_steps
from tiltmeter.training.prepared import prepared
from tiltmeter.training.update import Update

if TYPE_CHECKING:
    from tiltmeter.forecast.task import ForecastTask

#: Real steps that are taken on a copy, and how many of the first are not counted.
STEPS, DROPPED = 25, 5
#: Points that are evaluated together.
CHUNK = 256


class Price(NamedTuple):
    """Seconds of one step, of one evaluation, of the training loop without evaluations, and of all of it.

    `timing` are the seconds that it took to find this out.
    """

    step: float
    evaluation: float
    loop: float
    training: float
    timing: float = 0.0


def price_of(task: ForecastTask) -> Price:
    """Take a few real steps of the training on a copy, evaluate it once, and multiply.

    Interventions are counted by the gradients that they need: to time a scout would mean to train it.
    """
    started = task.clock()
    recipe = replace(task.fresh_recipe(), interventions=())
    model, total = task.fresh_model(), task.steps
    few = min(STEPS, total)
    dropped = min(DROPPED, few // 2)
    before = streams()
    with ExitStack() as stack:
        stack.callback(put_back, before)
        stack.enter_context(one_thread(small_steps(model, recipe.batch_size(len(task.train)))))
        made = prepared(model, task.train, recipe, task.watch, 0, {})
        torch.manual_seed(0)
        update = Update(model, made.data, made.optimiser, made.recipe, task.watch.read, made.laws, made.steering)
        batch = made.recipe.batches(made.data).in_turn(made.data, made.recipe.batch_size(len(made.data)), made.seed)
        begin = task.clock()
        for step in range(few):
            if step == dropped:
                begin = task.clock()
            made.scheduling.before(step)
            update(batch(step), step)
            made.scheduling.after()
        each = (task.clock() - begin) / (few - dropped)
        with untouched(model):
            answers = Answers(model, task.held_out, recipe.loss, task.watch.decide, task.watch.read, CHUNK, False)
            first = task.held_out.take(range(min(CHUNK, len(task.held_out)))).tensor_points()[0]
            for _ in scores(model, first, task.watch.read, CHUNK):  # what is done once is not counted
                pass
            begin = task.clock()
            answers.snapshot(model)
            look = task.clock() - begin
    each *= cost_of(task.recipe.interventions, len(task.train.groups), total)
    timing = task.clock() - started
    return Price(each, look, each * total, each * total + look * len(task.evaluations), timing)
