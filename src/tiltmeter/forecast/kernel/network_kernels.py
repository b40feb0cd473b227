"""tangent: the expensive part of a forecast, done once: kernels and first outputs of an untrained network."""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn

from tiltmeter.arguments import checked_choice, checked_flag, checked_function
from tiltmeter.data.grouped import GroupedData
from tiltmeter.forecast.batch_statistics import gather_statistics, say_gathered
from tiltmeter.forecast.inputs import (
    checked_classes,
    checked_data,
    checked_kernel,
    checked_model,
    checked_sample,
    in_one_array,
    outputs_of,
    say_held_out,
)
from tiltmeter.forecast.kernel.sample_correction import sampled
from tiltmeter.forecast.kernel.sampled_kernels import sampled_kernels, say_sampled, weight_sample
from tiltmeter.forecast.kernel.tangent import Outputs, Tangent, number_type_of
from tiltmeter.modules.forward import Read, bare, describe
from tiltmeter.modules.tangent.gradient import check_statistics
from tiltmeter.modules.tangent.kernel import initial_scores, kernels
from tiltmeter.modules.untouched import deep_copy
from tiltmeter.progress import Progress


def tangent(
    model: nn.Module,
    train: GroupedData,
    held_out: GroupedData | None = None,
    *,
    sample: int = 2500,
    seed: int = 0,
    outputs: Outputs | None = None,
    read: Read | None = None,
    progress: bool = True,
) -> Tangent:
    """The tangent kernels of a network on `sample` points of its training data; `seed` chooses them.

    >>> from tiltmeter import Recipe
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 5))
    >>> data = GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 400, p=[0.8, 0.2]))
    >>> kernels = tangent(nn.Linear(5, 1), *data.split(0.5), sample=100)
    >>> kernels
    <Tangent of Linear, 100 points of the training data, 200 to look at, 1 output (full)>
    >>> kernels.forecast(Recipe(lr=0.05, steps=50, weights={"b": 2.0}))["loss"].sizes["group"]
    2

    The kernels of a large convolutional network with several outputs are estimated from 20,000 of its weights, with a
    warning.

    Args:
        model: Network whose kernels are computed; it is not changed.
        train: Points to train on, with their groups.
        held_out: Points that judge it; None: a fifth of `train` is set aside.
        sample: Training points that the kernels use.
        seed: Seed that chooses them.
        outputs: What to do with several outputs, "full" or "trace"; None: all pairs if they fit in moderate memory.
        read: Finds the scores in what the model returns; None: the model returns scores.
        progress: Whether work of more than a few seconds shows its progress on stderr.
    """
    checked_flag("progress", progress)
    checked_function("read", read)
    checked_choice("outputs", outputs, (None, "full", "trace"))
    model = bare(checked_model(model))
    check_statistics(model)
    set_aside = held_out is None
    model, train, held_out = in_one_array(model, *checked_data(train, held_out))
    checked_sample(sample, seed)
    places, stands_for = sampled(train, sample, seed)
    part = train.take(places)
    own = deep_copy(model)
    gathered = gather_statistics(own, train, sample, read)
    x, seen = part.tensors(number_type_of(own))[0], held_out.tensors()[0]
    start_sample, start_held_out = (initial_scores(own, points, read=read) for points in (x, seen))
    columns = start_held_out.shape[1]
    checked_classes(train, columns)
    checked_classes(held_out, columns)
    how = outputs_of(outputs, len(part), len(held_out), columns)
    chosen = weight_sample(own, len(part), columns, seed)
    if chosen is not None:
        kernel, cross = sampled_kernels(own, x, seen, chosen, how, read)
    else:
        kernel, cross = _exact_kernels(own, x, seen, how, read, progress)
    checked_kernel(kernel, start_sample)
    if set_aside:
        say_held_out()
    say_gathered(gathered)
    say_sampled(chosen)
    return Tangent(
        model=own,
        sample=part,
        held_out=held_out,
        stands_for=stands_for,
        sizes=np.bincount(train.codes, minlength=len(train.groups)),
        kernel=kernel,
        cross=cross,
        start_sample=start_sample,
        start_held_out=start_held_out,
        outputs=how,
        positive=float(train.labels[-1]),
        read=read,
        settings={
            "model": describe(model),
            "train": train.to_json(),
            "sample": len(part),
            "sample_seed": seed,
            "outputs": how,
            **({} if chosen is None else {"weights": sum(len(one.places) for one in chosen)}),
            "held_out": "a fifth of every group, held out" if set_aside else "given",
            **({"batch_statistics": "of the training data"} if gathered else {}),
        },
    )


def _exact_kernels(
    model: nn.Module, x: Tensor, seen: Tensor, outputs: Outputs, read: Read | None, progress: bool
) -> tuple[np.ndarray, np.ndarray]:
    work = 2 * len(x) * (len(x) + len(seen))
    with Progress(work, lambda _: f"Kernel of {len(x)} and {len(seen)} points") as tell:
        return kernels(model, x, seen, outputs=outputs, read=read, tell=tell if progress else None)
