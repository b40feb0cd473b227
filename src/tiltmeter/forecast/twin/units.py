"""Units: which dimensions of which layers belong together, so that a unit is cut everywhere or nowhere."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.passes.forward import Read

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
        found = network(points)
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
