"""Layers: which dimensions of which layers belong together, and how each kind of layer is cut."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.instancenorm import _InstanceNorm

from tiltmeter.modules.forward import Read

#: Fewer units than this are not left of any dimension: averages over them would be no averages, and convolutions of
#: two or four channels stop torch 2.13 on some processors.
FEWEST = 8
#: Heads that attention keeps at least.
HEADS = 2


class Coupled:
    """One dimension of the network: `count` units that several layers share, and how to find their places in each."""

    def __init__(
        self, root: nn.Module, count: int, members: list[tuple[Any, bool]], places: Callable[..., Any]
    ) -> None:
        self.root, self.count, self.members, self._places = root, count, members, places

    def step(self) -> int:
        """Units stay in multiples of this number: whole heads, and as many of every group of a GroupNorm."""
        found = [m.head_dim for m, _ in self.members if isinstance(m, nn.MultiheadAttention) and m.num_heads > 1]
        return math.lcm(1, *found, *self._groups())

    def _groups(self) -> list[int]:
        return [m.num_groups for m, _ in self.members if isinstance(m, nn.GroupNorm)]

    def left(self, share: float) -> int:
        """How many units stay."""
        step = self.step()
        heads = [m for m, _ in self.members if isinstance(m, nn.MultiheadAttention) and m.num_heads > 1]
        least = max([FEWEST, *(HEADS * int(m.head_dim) for m in heads)])
        return min(self.count, step * math.ceil(max(share * self.count, least) / step - 1e-9))

    def chosen(self, count: int, choose: Callable[[slice, int], np.ndarray]) -> np.ndarray:
        """So many units, in order: as many of every group of a GroupNorm, chosen by a function of group and number."""
        parts = math.lcm(1, *self._groups())
        size = self.count // parts
        groups = [slice(part * size, (part + 1) * size) for part in range(parts)]
        return np.sort(np.concatenate([group.start + choose(group, count // parts) for group in groups]))

    def places(self, kept: np.ndarray) -> Iterator[tuple[Any, bool, np.ndarray]]:
        """Every layer or parameter, whether these are the units it gives, and the places in it that are lost."""
        lost = np.setdiff1d(np.arange(self.count), kept)
        yield from self._places(self.root, lost.tolist())


def coupled_units(model: nn.Module, x: Tensor, read: Read | None) -> list[Coupled]:
    """The hidden dimensions of a network, from the graph of its operations on these points (torch-pruning).

    The model is left in evaluation mode: pass a copy. Dimensions of inputs and outputs are left out.
    """
    import torch_pruning
    from torch_pruning import ops

    class Recurrent(torch_pruning.BasePruningFunc):  # type: ignore[misc]  # the library knows LSTM only
        def prune_out_channels(self, layer: Any, idxs: Any) -> Any:  # noqa: ARG002
            return layer

        def prune_in_channels(self, layer: Any, idxs: Any) -> Any:  # noqa: ARG002
            return layer

        def get_out_channels(self, layer: Any) -> int:
            return int(layer.hidden_size)

        def get_in_channels(self, layer: Any) -> int:
            return int(layer.input_size)

    def forward(network: nn.Module, points: Tensor) -> Tensor:
        found = network(points.clone())
        return found if read is None else read(found)

    graph = torch_pruning.DependencyGraph()
    own = {kind: Recurrent() for kind in (nn.GRU, nn.RNN, nn.LSTM)}
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        graph.build_dependency(model, example_inputs=x, forward_fn=forward, verbose=False, customized_pruners=own)

    def places(root: nn.Module, lost: list[int]) -> Iterator[tuple[Any, bool, np.ndarray]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            group = graph.get_pruning_group(root, graph.get_pruner_of_module(root).prune_out_channels, lost)
        for dep, found in group:
            target = dep.target
            if isinstance(target.module, (nn.Parameter, *_KINDS)):
                yield target.module, bool(graph.is_out_channel_pruning_fn(dep.handler)), np.asarray(found, dtype=int)

    kinds = (*_ROOTS, *own)
    found = []
    for group in graph.get_all_groups(root_module_types=kinds):
        root = group[0].dep.target.module
        count = int(graph.get_out_channels(root))
        members = [(m, out) for m, out, _ in places(root, list(range(count)))]
        reaches_output = any(dep.target.type == ops.OPTYPE.OUTPUT for dep, _ in group)
        taken = any(not out for m, out in members if isinstance(m, (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase)))
        if taken and not reaches_output and count > FEWEST:
            found.append(Coupled(root, count, members, places))
    return found


_ROOTS = (nn.modules.conv._ConvNd, nn.Linear, nn.Embedding, nn.MultiheadAttention)
_KINDS = (
    *_ROOTS,
    *(nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm, nn.LayerNorm, nn.GroupNorm),
    *(nn.PReLU, nn.RNNBase),
)


class Kept(NamedTuple):
    """The units of a layer that stay: those it gives (`out`) and those it takes (`into`); None: all."""

    out: np.ndarray | None
    into: np.ndarray | None


class Shares(NamedTuple):
    """The share of the units that stay on both sides of a parameter; 1: this side was not cut."""

    out: float = 1.0
    into: float = 1.0


def narrow(layer: nn.Module, kept: Kept) -> dict[str, Shares]:
    """Cut the layer in place to these units and say what was cut of each of its parameters.

    >>> line = nn.Linear(4, 6)
    >>> narrow(line, Kept(np.array([0, 3, 5]), None))["weight"], line
    (Shares(out=0.5, into=1.0), Linear(in_features=4, out_features=3, bias=True))
    """
    rule = next((rule for kinds, rule in _RULES.items() if isinstance(layer, kinds)), None)
    if rule is None:
        raise TypeError(f"{type(layer).__name__} cannot be cut")
    found = rule(layer, kept)
    return {name: shares for name, shares in found.items() if shares != Shares()}


def _pick(layer: nn.Module, name: str, dims: Mapping[int, np.ndarray | None]) -> dict[int, float]:
    """Keep these places of a parameter or buffer; the share of each dimension that stays."""
    tensor = getattr(layer, name, None)
    if not isinstance(tensor, Tensor):
        return {}
    shares: dict[int, float] = {}
    value = tensor.detach()
    for dim, places in dims.items():
        if places is not None:
            shares[dim] = len(places) / value.shape[dim]
            value = value.index_select(dim, torch.as_tensor(places, device=value.device))
    if isinstance(tensor, nn.Parameter):
        setattr(layer, name, nn.Parameter(value.clone(), requires_grad=tensor.requires_grad))
    elif shares:
        setattr(layer, name, value.clone())
    return shares


def _weights(layer: nn.Module, kept: Kept, out: int, into: int) -> dict[str, Shares]:
    """`weight` with its two dimensions, and a `bias` over the units given."""
    weight = _pick(layer, "weight", {out: kept.out, into: kept.into})
    bias = _pick(layer, "bias", {0: kept.out})
    return {
        "weight": Shares(weight.get(out, 1.0), weight.get(into, 1.0)),
        "bias": Shares(bias.get(0, 1.0)),
    }


def _linear(layer: nn.Linear, kept: Kept) -> dict[str, Shares]:
    found = _weights(layer, kept, 0, 1)
    layer.out_features, layer.in_features = layer.weight.shape
    return found


def _convolution(layer: _ConvNd, kept: Kept) -> dict[str, Shares]:
    if layer.groups > 1:
        units = kept.out if kept.out is not None else kept.into
        if not layer.groups == layer.in_channels == layer.out_channels:
            raise TypeError("a grouped convolution cannot be cut")
        found = _weights(layer, Kept(units, None), 0, 1)
        layer.in_channels = layer.out_channels = layer.groups = layer.weight.shape[0]
        return found
    turned = isinstance(layer, _ConvTransposeNd)
    found = _weights(layer, kept, *((1, 0) if turned else (0, 1)))
    sizes = layer.weight.shape[:2]
    layer.out_channels, layer.in_channels = reversed(sizes) if turned else sizes
    return found


def _one_by_one(layer: Any, kept: Kept) -> dict[str, Shares]:
    """Normalisation and PReLU: every unit by itself, with the same units on both sides."""
    units = kept.out if kept.out is not None else kept.into
    assert units is not None
    if isinstance(layer, nn.LayerNorm) and len(layer.normalized_shape) != 1:
        raise TypeError("a LayerNorm over several dimensions cannot be cut")
    if isinstance(layer, nn.PReLU) and layer.num_parameters == 1:
        return {}
    found = {name: _pick(layer, name, {0: units}) for name in ("weight", "bias", "running_mean", "running_var")}
    if isinstance(layer, nn.LayerNorm):
        layer.normalized_shape = (len(units),)
    else:
        size = next(name for name in ("num_features", "num_channels", "num_parameters") if hasattr(layer, name))
        setattr(layer, size, len(units))
    return {name: Shares(found[name].get(0, 1.0)) for name in ("weight", "bias")}


def _embedding(layer: nn.Embedding, kept: Kept) -> dict[str, Shares]:
    found = _pick(layer, "weight", {1: kept.out})
    layer.embedding_dim = layer.weight.shape[1]
    return {"weight": Shares(found.get(1, 1.0))}


def _attention(layer: nn.MultiheadAttention, kept: Kept) -> dict[str, Shares]:
    """The stream of features loses units, the attention whole heads; with one head alone, the head loses units."""
    stream = kept.out if kept.out is not None else kept.into
    assert stream is not None
    if not layer._qkv_same_embed_dim:
        raise TypeError("attention with keys or values of another size cannot be cut")
    size, wide = layer.head_dim, layer.embed_dim
    if len(stream) % size == 0:
        heads = np.unique(np.linspace(0, layer.num_heads - 1, len(stream) // size).round().astype(int))
        rows = (heads[:, None] * size + np.arange(size)).ravel()
        layer.num_heads = len(heads)
    elif layer.num_heads == 1:
        rows = stream
    else:
        raise TypeError("attention needs whole heads")
    thrice = np.concatenate([rows, rows + wide, rows + 2 * wide])
    weight = _pick(layer, "in_proj_weight", {0: thrice, 1: stream})
    found = {"in_proj_weight": Shares(weight[0], weight[1])}
    for name, dim, places in (("in_proj_bias", 0, thrice), ("bias_k", 2, rows), ("bias_v", 2, rows)):
        found[name] = Shares(_pick(layer, name, {dim: places}).get(dim, 1.0))
    inner = narrow(layer.out_proj, Kept(stream, rows))
    layer.embed_dim = layer.kdim = layer.vdim = len(stream)
    layer.head_dim = len(stream) // layer.num_heads
    return {**found, **{f"out_proj.{name}": shares for name, shares in inner.items()}}


def _recurrent(layer: nn.RNNBase, kept: Kept) -> dict[str, Shares]:
    """Every gate keeps the same hidden units, in all layers and both directions."""
    if layer.proj_size:
        raise TypeError("a recurrent layer with projections cannot be cut")
    hidden, found = layer.hidden_size, dict[str, Shares]()
    gates = len(layer.get_parameter("weight_hh_l0")) // hidden
    rows = None if kept.out is None else np.concatenate([kept.out + gate * hidden for gate in range(gates)])
    sides = 2 if layer.bidirectional else 1
    for number in range(layer.num_layers):
        columns = kept.into if number == 0 else kept.out
        if number and kept.out is not None and sides == 2:
            columns = np.concatenate([kept.out, kept.out + hidden])
        for end in ("", "_reverse")[:sides]:
            place = f"l{number}{end}"
            for name, dims in (
                (f"weight_ih_{place}", {0: rows, 1: columns}),
                (f"weight_hh_{place}", {0: rows, 1: kept.out}),
                (f"bias_ih_{place}", {0: rows}),
                (f"bias_hh_{place}", {0: rows}),
            ):
                shares = _pick(layer, name, dims)
                found[name] = Shares(shares.get(0, 1.0), shares.get(1, 1.0))
    if kept.out is not None:
        layer.hidden_size = len(kept.out)
    if kept.into is not None:
        layer.input_size = len(kept.into)
    layer._init_flat_weights()
    return found


_RULES: dict[tuple[type, ...], Callable[..., dict[str, Shares]]] = {
    (nn.Linear,): _linear,
    (_ConvNd,): _convolution,
    (_BatchNorm, _InstanceNorm, nn.LayerNorm, nn.GroupNorm, nn.PReLU): _one_by_one,
    (nn.Embedding,): _embedding,
    (nn.MultiheadAttention,): _attention,
    (nn.RNNBase,): _recurrent,
}
