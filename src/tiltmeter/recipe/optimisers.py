"""Optimisers: factories of torch.optim, checked, written as JSON and rebuilt from it by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from tiltmeter.record.labelled import JSON

#: What makes an optimiser from parameters: `torch.optim.Adam` itself, or `partial(torch.optim.AdamW, lr=3e-4)`.
MakeOptimiser: TypeAlias = Callable[[Iterable[Any]], Any]

#: An example, shown in every error about a wrong kind of optimiser.
RIGHT = "partial(torch.optim.AdamW, lr=3e-4)"
#: The settings of torch.optim.SGD that a recipe spells out in its short form.
SHORT = ("lr", "momentum", "nesterov", "weight_decay")


def check_optimiser(given: object) -> None:
    """Refuse what cannot make a torch optimiser; the error shows an example that can."""
    if isinstance(given, str):
        raise TypeError(f"`optimiser` should make a torch optimiser, as {RIGHT}. Found the text {given!r}.")
    if hasattr(given, "param_groups"):
        kind = type(given).__name__
        raise TypeError(
            f"`optimiser` should make one from the parameters, as partial(torch.optim.{kind}, lr=...). Found a {kind} "
            "that already holds parameters."
        )
    if not callable(given):
        kind, home = type(given).__name__, type(given).__module__
        own = " of tiltmeter, which `simulate` takes" if home.startswith("tiltmeter.") else ""
        raise TypeError(f"`optimiser` should make a torch optimiser, as {RIGHT}. Found {kind}{own}.")


def made_by(make: MakeOptimiser, parameters: Iterable[Any]) -> Any:
    """Make the optimiser of these parameters."""
    from torch.optim import Optimizer

    try:
        made = make(parameters)
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise kind(f"`optimiser` should make a torch optimiser, as {RIGHT}. Found that it fails: {said}") from error
    if not isinstance(made, Optimizer):
        raise TypeError(f"`optimiser` should make a torch optimiser, as {RIGHT}. Found that it makes {_kind(made)}.")
    return made


def check_alike(made: Any, parameters: Iterable[Any]) -> None:
    """Refuse an optimiser that treats parameters differently from one another, or leaves some out."""
    groups = made.param_groups
    if len(groups) > 1:
        raise ValueError(f"`optimiser` should treat all parameters alike. Found {len(groups)} parameter groups.")
    held = {id(parameter) for parameter in groups[0]["params"]}
    left = [parameter for parameter in parameters if parameter.requires_grad and id(parameter) not in held]
    if left:
        raise ValueError(f"`optimiser` should take all parameters here. Found that it leaves out {len(left)}.")


def optimiser_to_json(make: MakeOptimiser) -> dict[str, JSON]:
    """Write class and settings where both can be rebuilt; else the name of the callable."""
    return factory_to_json(make, "class") or {"callable": getattr(make, "__qualname__", repr(make))}


def optimiser_from_json(value: Mapping[str, Any]) -> MakeOptimiser:
    """Rebuild the factory that `optimiser_to_json` wrote: only classes of torch.optim, never an imported name."""
    made: MakeOptimiser | None = factory_from_json(value, "class")
    if made is None:
        raise ValueError(f"The optimiser {value.get('callable', value)!r} cannot be rebuilt: it is not of torch.optim.")
    return made


def factory_to_json(make: Any, key: str) -> dict[str, JSON] | None:
    """An optimiser ("class") or a "scheduler" of torch with its settings; None for any other callable."""
    base, settings = unwrapped(make)
    name = getattr(base, "__name__", "")
    if base is not _torch_class(name, key) or not all(map(_plain, settings.values())):
        return None
    return {key: name, **{setting: _json(value) for setting, value in settings.items()}}


def factory_from_json(value: Mapping[str, Any], key: str) -> Any:
    """What makes an object of that class; None if torch has no such class."""
    base = _torch_class(str(value.get(key, "")), key)
    settings = {name: tuple(one) if isinstance(one, list) else one for name, one in value.items() if name != key}
    return None if base is None else partial(base, **settings)


def unwrapped(make: MakeOptimiser) -> tuple[Any, dict[str, Any]]:
    """Return the function that a (nested) partial calls in the end, and the settings that it passes."""
    settings: dict[str, Any] = {}
    while isinstance(make, partial):
        settings = {**make.keywords, **settings}
        make = make.func
    return make, settings


def _torch_class(name: str, key: str) -> Any:
    from torch import optim

    schedulers = optim.lr_scheduler
    home, kind = (optim, optim.Optimizer) if key == "class" else (schedulers, schedulers.LRScheduler)
    found = getattr(home, name, None) if name.isidentifier() else None
    return found if isinstance(found, type) and issubclass(found, kind) else None


def _plain(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_plain(one) for one in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _json(value: Any) -> JSON:
    return [_json(one) for one in value] if isinstance(value, (tuple, list)) else value


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__
