"""A second device without a GPU: tensors with values that say they are on `meta`, and refuse what a GPU would refuse.

Inside `with AwayDevice():`, whatever is made on the device `meta` or moved there is an `Away` tensor. It computes on
the processor, but an operation on it and a tensor of the processor together raises, as on a GPU; so does `.numpy()`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

aten = torch.ops.aten
#: Operations that a GPU allows with tensors of the processor: moving, and places in an array of the GPU.
ALLOWED = {
    aten.copy_.default,
    aten._to_copy.default,
    aten.index.Tensor,
    aten.index_put_.default,
    aten.index_put.default,
}
DEVICE = torch.device("meta")


class Away(Tensor):
    """A tensor of the second device; `inner` holds its values."""

    inner: Tensor
    is_meta = False  # it has values

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Away":
        made: Away = Tensor._make_wrapper_subclass(
            cls, inner.size(), inner.stride(), inner.storage_offset(), dtype=inner.dtype, device=DEVICE
        )
        made.inner = inner
        return made

    def tolist(self) -> Any:
        return self.inner.tolist()

    def __repr__(self, **_: Any) -> str:
        return f"Away({self.inner!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [part for part in tree_flatten((args, kwargs))[0] if isinstance(part, Tensor)]
        here = [tensor for tensor in tensors if not isinstance(tensor, Away) and tensor.dim() > 0]
        first_away = isinstance(tensors[0], Away)
        if here and not (func in ALLOWED and (first_away or func in (aten.copy_.default, aten._to_copy.default))):
            raise RuntimeError(f"Expected all tensors on the same device, found two: {func}")
        target = torch.device(kwargs["device"]) if kwargs.get("device") is not None else DEVICE
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        plain_args, plain_kwargs = tree_map_only(Away, lambda tensor: tensor.inner, (args, kwargs))
        result = func(*plain_args, **plain_kwargs)
        if target.type == "cpu":
            return result
        if func is aten.copy_.default and not first_away:
            return args[0]
        wrapped = tree_map_only(Tensor, cls, result)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


class AwayDevice(TorchDispatchMode):
    """Inside, `device="meta"` makes tensors with values."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "meta" and not issubclass(Away, tuple(types) or (int,)):
            return tree_map_only(Tensor, Away, func(*args, **{**kwargs, "device": torch.device("cpu")}))
        return func(*args, **kwargs)
