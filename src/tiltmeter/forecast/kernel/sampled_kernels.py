"""Sampled kernels: kernels of a large network from a part of its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tiltmeter.modules.forward import Read, flat_scores
from tiltmeter.modules.tangent.factors import Rows
from tiltmeter.modules.tangent.layer_capture import capture, placed
from tiltmeter.modules.tangent.memory import CHUNK_BYTES, chunk_bytes
from tiltmeter.modules.tangent.rules import RULES, Written, mapped, normalisation, one_by_one
from tiltmeter.modules.untouched import untouched
from tiltmeter.shown_text import warn_caller
from tiltmeter.threads import check_fits

#: Tensors with no more numbers are taken whole: biases and read-outs count for more than their number.
WHOLE = 300


@dataclass(frozen=True, eq=False)
class Stratum:
    """Some numbers of one parameter: their places in it, and how many numbers each stands for."""

    name: str
    places: np.ndarray
    stands_for: float


def strata(model: nn.Module, count: int, seed: int) -> list[Stratum]:
    """About `count` trained weights: small tensors whole, the others in proportion to their size.

    >>> found = strata(nn.Sequential(nn.Linear(50, 40), nn.ReLU(), nn.Linear(40, 1)), 500, seed=0)
    >>> [(one.name, len(one.places), round(one.stands_for, 2)) for one in found]
    [('0.weight', 419, 4.77), ('0.bias', 40, 1.0), ('2.weight', 40, 1.0), ('2.bias', 1, 1.0)]
    """
    sizes = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    small = {name for name, size in sizes.items() if size <= WHOLE}
    left = max(0, count - sum(sizes[name] for name in small))
    others = sum(size for name, size in sizes.items() if name not in small)
    rng = np.random.default_rng((seed, 7))
    found = []
    for name, size in sizes.items():
        wanted = size if name in small or left >= others else min(size, max(1, round(left * size / others)))
        places = np.arange(size) if wanted == size else np.sort(rng.choice(size, wanted, replace=False))
        found.append(Stratum(name, places, size / wanted))
    return found


#: Points that go through the network together.
CHUNK = 256
#: How far the columns of a rule may be from true gradients, over their size.
TOLERANCE = 1e-3


def columns(model: nn.Module, chosen: Sequence[Stratum], x: Tensor, read: Read | None) -> Tensor:
    """The Jacobian (points, outputs, weights) of these weights, in evaluation mode; the model is not changed.

    >>> import numpy as np
    >>> line = nn.Linear(2, 1)
    >>> columns(line, [Stratum("weight", np.array([1]), 2.0)], torch.tensor([[3.0, 5.0]]), None)
    tensor([[[5.]]])
    """
    layers = _layers(model, chosen)
    with untouched(model):
        write, layers = _checked(model, chosen, layers, x[: min(2, len(x))], read)
        rest = [one for one in chosen if one.name.rpartition(".")[0] not in layers]
        held = sum(model.get_parameter(one.name).numel() for one in rest) * 4
        outputs = _block(model, chosen, layers, x[:1], read, write).shape[1]
        most = max(1, min(CHUNK, chunk_bytes() // max(1, held * outputs + _passing(model, layers, x[:1], read))))
        return torch.cat(
            [_block(model, chosen, layers, part, read, write) for part in torch.split(placed(model, x), most)], 0
        )


def _passing(model: nn.Module, layers: dict[str, nn.Module], x: Tensor, read: Read | None) -> int:
    """Bytes of what a pass keeps of one point: inputs of layers and slopes of every output, with room for copies."""
    if not layers:
        return 0
    taps = capture(model, list(layers.values()), placed(model, x), read)[1]
    return 3 * sum(tap.nbytes for pair in taps.values() for tap in pair or ())


def _block(
    model: nn.Module,
    chosen: Sequence[Stratum],
    layers: dict[str, nn.Module],
    x: Tensor,
    read: Read | None,
    write: Written,
) -> Tensor:
    """The columns of a few points, in the order of the weights chosen."""
    found: dict[str, Tensor] = {}
    if layers:
        _, taps = capture(model, list(layers.values()), x, read)
        for name, layer in layers.items():
            pair = taps.get(layer)
            for one in chosen:
                owner, _, own = one.name.rpartition(".")
                if owner == name:
                    found[one.name] = _of_layer(layer, own, one, pair, x)
    rest = [one for one in chosen if one.name not in found]
    if rest:
        rows = write(model, [one.name for one in rest], x, read).gradients
        sizes = [model.get_parameter(one.name).numel() for one in rest]
        for one, part in zip(rest, torch.split(rows, sizes, 2), strict=True):
            found[one.name] = part[:, :, torch.as_tensor(one.places)]
    outputs = max(part.shape[1] for part in found.values())
    return torch.cat([found[one.name].expand(-1, outputs, -1) for one in chosen], 2)


def _of_layer(layer: nn.Module, own: str, one: Stratum, taps: list[Tensor] | None, x: Tensor) -> Tensor:
    if taps is None:  # not reached by these points
        return x.new_zeros(len(x), 1, len(one.places), dtype=torch.float32)
    inputs, slopes = taps[0], taps[1]
    places = torch.as_tensor(one.places)
    if RULES.get(type(layer)) is normalisation:
        rows = normalisation(layer, inputs, slopes)
        if not isinstance(rows, Rows):
            raise RuntimeError("no rule for these statistics")
        size = layer.get_parameter(own).numel()
        found = rows.gradients[:, :, :size] if own == "weight" else rows.gradients[:, :, -size:]
        return found[:, :, places]
    if isinstance(layer, nn.Conv2d):
        slopes = slopes.flatten(3)  # (points, outputs, channels, positions)
        if own == "bias":
            return slopes.sum(3)[:, :, places]
        patches = functional.unfold(inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride)  # type: ignore[arg-type]
        return _of_patches(slopes, patches, places)
    if slopes.ndim > 3:  # several positions
        slopes, inputs = slopes.flatten(2, -2), inputs.flatten(1, -2)
    else:
        slopes, inputs = slopes[:, :, None], inputs[:, None]
    if own == "bias":
        return slopes.sum(2)[:, :, places]
    width = inputs.shape[-1]
    return (slopes[..., places // width] * inputs[:, None][..., places % width]).sum(2)


def _of_patches(slopes: Tensor, patches: Tensor, places: Tensor) -> Tensor:
    """Sums over positions of slope times patch, for the pairs of channel and patch at these places of the weights."""
    width = patches.shape[1]
    if 4 * len(places) > slopes.shape[2] * width:  # most of them: all together are cheaper
        return torch.einsum("pcol,pql->pcoq", slopes, patches).flatten(2)[:, :, places]
    bytes_each = 2 * slopes.shape[0] * slopes.shape[1] * slopes.shape[3] * slopes.element_size()
    parts = torch.split(places, max(1, CHUNK_BYTES // 4 // bytes_each))
    return torch.cat([(slopes[:, :, p // width] * patches[:, None, p % width]).sum(3) for p in parts], 2)


def _layers(model: nn.Module, chosen: Sequence[Stratum]) -> dict[str, nn.Module]:
    """Layers whose weights are products of inputs and slopes, and those of normalisation."""
    owners = {one.name.rpartition(".")[0] for one in chosen}
    return {
        name: layer
        for name, layer in model.named_modules()
        if name in owners
        and (type(layer) is nn.Linear or _plain_convolution(layer) or RULES.get(type(layer)) is normalisation)
    }


def _plain_convolution(layer: nn.Module) -> bool:
    return (
        type(layer) is nn.Conv2d
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    )


def _checked(
    model: nn.Module, chosen: Sequence[Stratum], layers: dict[str, nn.Module], few: Tensor, read: Read | None
) -> tuple[Written, dict[str, nn.Module]]:
    """The layers whose columns are their true gradients on a few points, and a way to write the others out."""
    few = placed(model, few)
    read = _summed(model, few, read)
    true = _block(model, chosen, {}, few, read, one_by_one)
    parts = torch.split(true, [len(one.places) for one in chosen], 2)
    trusted = {}
    for name, layer in layers.items():
        own = [one.name.rpartition(".")[0] == name for one in chosen]
        mine = [one for one, is_own in zip(chosen, own, strict=True) if is_own]
        expected = torch.cat([part for part, is_own in zip(parts, own, strict=True) if is_own], 2)
        try:
            found = _block(model, mine, {name: layer}, few, read, one_by_one)
        except (RuntimeError, KeyError):
            continue
        if _near(found, expected):
            trusted[name] = layer
    rest = [one for one in chosen if one.name.rpartition(".")[0] not in trusted]
    try:
        quick = not rest or _near(*(_block(model, rest, {}, few, read, how) for how in (mapped, one_by_one)))
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        quick = False
    return (mapped if quick else one_by_one), trusted


def _summed(model: nn.Module, few: Tensor, read: Read | None) -> Read | None:
    """One random sum over outputs is enough to see a rule that is wrong in any of them, and takes less memory."""
    outputs = flat_scores(model(few), len(few), read).reshape(len(few), -1).shape[1]
    if outputs == 1:
        return read
    drawn = torch.randn(outputs, 1, generator=torch.Generator().manual_seed(0))

    def summed(output: Any) -> Tensor:
        found: Tensor = output if read is None else read(output)
        return found.flatten(1) @ drawn.to(found)

    return summed


def _near(found: Tensor, true: Tensor) -> bool:
    return float((found - true).norm()) <= TOLERANCE * float(true.norm()) + 1e-12


#: Weights of the sample, and how often gradients may be computed again before they are sampled.
WEIGHTS, OFTEN = 20_000, 4


def weight_sample(model: nn.Module, points: int, outputs: int, seed: int) -> tuple[Stratum, ...] | None:
    """The weights from which kernels are estimated; None if exact kernels are affordable.

    >>> weight_sample(nn.Conv2d(3, 8, 3), 500, 10, 0) is None
    True

    An exact kernel needs the gradients of convolutions for every output of every point. Where only a small part of them
    fits in memory, they would be computed again and again.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, nn.modules.conv._ConvNd)]
    numbers = sum(p.numel() for layer in layers for p in layer.parameters() if p.requires_grad)
    if 4.0 * points * outputs * numbers <= OFTEN * chunk_bytes():
        return None
    return tuple(strata(model, WEIGHTS, seed))


def say_sampled(chosen: Sequence[Stratum] | None) -> None:
    """Warn that kernels are estimates."""
    if chosen is not None:
        count = sum(len(one.places) for one in chosen)
        warn_caller(
            f"The gradients of `model` are too large for exact kernels: these are estimated from {count:,} of its "
            "weights, which is right to about one part in a hundred."
        )


def sampled_kernels(
    model: nn.Module, x: Tensor, others: Sequence[Tensor], chosen: Sequence[Stratum], outputs: str, read: Read | None
) -> list[np.ndarray]:
    """K(x, x) and K(other, x) for each of the others, each weight of the sample counting for those it stands for.

    >>> line = nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[1.0, 2.0]])
    >>> sampled_kernels(line, x, (), [Stratum("weight", np.array([0, 1]), 1.0)], "full", None)
    [array([[5.]])]

    With m weights the kernel is right to about one part in the root of m. `outputs` is "full" or "trace", as in
    `tangent_kernel`.
    """
    counts = torch.cat([torch.full((len(one.places),), one.stands_for) for one in chosen])
    points = len(x) + sum(len(other) for other in others)
    trial = columns(model, chosen, x[:1], read)
    check_fits("weights", len(counts), points * trial.shape[1] * trial.element_size(), f"weights at {points:,} points")
    mine = columns(model, chosen, x, read) * counts.sqrt().to(trial)
    found = [_products(mine, mine, outputs)]
    for other in others:
        found.append(_products(columns(model, chosen, other, read) * counts.sqrt().to(trial), mine, outputs))
    return found


def _products(rows: Tensor, columns_: Tensor, outputs: str) -> np.ndarray:
    if outputs == "full":
        found = rows.flatten(0, 1) @ columns_.flatten(0, 1).T
    else:
        found = rows.flatten(1) @ columns_.flatten(1).T / rows.shape[1]
    return np.asarray(found.double().cpu().numpy())
