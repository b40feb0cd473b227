"""Read a TOML file; errors are one sentence."""

from __future__ import annotations

import reprlib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

WORDS: dict[Any, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxdict = 4
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


@dataclass(frozen=True)
class Between:
    """Numbers from `low` to `high`; without `low_too` the lowest itself is excluded."""

    low: float
    high: float = float("inf")
    low_too: bool = True

    def __contains__(self, value: float) -> bool:
        return (self.low <= value if self.low_too else self.low < value) and value <= self.high

    def __str__(self) -> str:
        if self.high == float("inf"):
            return f"of at least {self.low:,}" if self.low_too else f"above {self.low:,}"
        return f"from {self.low:,} to {self.high:,}" if self.low_too else f"above {self.low:,} and up to {self.high:,}"


def check_table(given: Any, hints: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the table, after checking every key and the type of every value.

    >>> check_table({"hidden": [8, -3]}, {"hidden": tuple[Annotated[int, Between(1)], ...]}, "[model]")
    Traceback (most recent call last):
    TypeError: [model]: `hidden` should be a list, each a whole number of at least 1. Found hidden = [8, -3].
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{where} should be a table of keys and values. Found {short(given)}.")
    check_keys(given, [key for key, hint in hints.items() if words(hint)], where, also=hints)
    for key, value in given.items():
        if not words(hints[key]):
            raise TypeError(f"{where}: `{key}` is an object of Python, which a file cannot hold.")
        if not fits(value, hints[key]):
            raise TypeError(f"{where}: `{key}` should be {words(hints[key])}. Found {key} = {short(value)}.")
    return dict(given)


def check_keys(given: Iterable[Any], names: Iterable[str], where: str, also: Iterable[str] = ()) -> None:
    """Refuse a key that is not among the names, with the nearest name where there is one."""
    names = list(names)
    for key in given:
        if key not in names and key not in also:
            near = get_close_matches(str(key), names, 1, 0.6)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise KeyError(f"{where}: unknown key {short(key)}. There are: {', '.join(names) or 'none'}.{hint}")


def short(value: Any) -> str:
    """Return a value as a message shows it, shortened."""
    return _SHORT.repr(value)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value of a file is of this kind."""
    origin = get_origin(hint)
    if hint is Any:
        return True
    if origin is Annotated:
        kind, limits = get_args(hint)
        return fits(value, kind) and value in limits
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    if origin is tuple:
        return isinstance(value, list) and all(fits(one, get_args(hint)[0]) for one in value)
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(fits(one, get_args(hint)[1]) for one in value.values())
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
    return hint in WORDS and isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def words(hint: Any) -> str:
    """Return in words what a file should hold for this type; empty if a file cannot hold it."""
    origin = get_origin(hint)
    if hint is Any:
        return "a value"
    if origin is Annotated:
        kind, limits = get_args(hint)
        return f"{words(kind)} {limits}"
    if origin in (Union, UnionType):
        return " or ".join(filter(None, (words(part) for part in get_args(hint) if part is not NoneType)))
    if origin is Literal:
        return " or ".join(f'"{one}"' for one in get_args(hint))
    if origin is tuple:
        inner = words(get_args(hint)[0])
        return f"a list, each {inner}" if inner else ""
    if origin is not None and issubclass(origin, Mapping):
        inner = words(get_args(hint)[1])
        return (f"a table, each {inner}" if inner != "a value" else "a table") if inner else ""
    return WORDS.get(hint, "")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of the file."""
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: byte {error.start + 1} is not UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply to be read.") from None
    except ValueError:  # Python refuses whole numbers of thousands of digits
        raise ValueError(f"{path} holds a number with more digits than can be read.") from None


Seed = Annotated[int, Between(0, 2**63 - 1)]
Positive = Annotated[float, Between(0.0, 1e150, low_too=False)]
NotNegative = Annotated[float, Between(0.0, 1e150)]
#: Longer trainings than this would take years on any machine.
Steps = Annotated[int, Between(1, 10**10)]
Count = Annotated[int, Between(1, 10**9)]
Numbers = tuple[float, ...]
ByGroup = Mapping[str, Annotated[float, Between(0.0, 1e150)]]

_PER_GROUP = Numbers | Mapping[str, Any]
#: A problem of two labels or of several classes.
PROBLEM: dict[str, Any] = {
    "case": str,
    "rho": float,
    "shift": float,
    "variance": _PER_GROUP,
    "overlap": float,
    "shift_overlap": Numbers,
    "label_bias": _PER_GROUP,
    "thresholds": Numbers,
    "mean_labels": Numbers,
    "weight": Mapping[str, float],
    "gram": tuple[tuple[float, ...], ...],
    "means": Mapping[str, Numbers],
    "teachers": Mapping[str, Numbers | Mapping[str, Numbers]],
    "classes": int | tuple[str, ...],
    "similarity": float,
    "swapped": bool,
    "class_bias": Numbers,
    "softmax": bool,
}
#: The file of `train`, `forecast` and `measure`.
TRAINING_FILE: dict[str, dict[str, Any]] = {
    "data": {
        "source": str,
        "label": str,
        "positive": str | float | bool,
        "group": str | tuple[str, ...],
        "columns": tuple[str, ...],
        "weights": str,
        "missing": Literal["drop", "impute", "error"],
        "held_out": float,
        "seed": Seed,
        "share": float,
        "labels": str,
        "classes": Mapping[str, Any],
        "shares": ByGroup,
        "d": Count,
        "points": Count,
    },
    "problem": PROBLEM,
    "model": {"hidden": tuple[Annotated[int, Between(1, 10**9)], ...], "activation": str, "outputs": Count},
    "training": {
        "optimiser": str | Mapping[str, Any],
        "lr": Positive | Mapping[str, Any],
        "momentum": float,
        "nesterov": bool,
        "weight_decay": NotNegative,
        "steps": Steps,
        "epochs": Count,
        "batch": Count | Literal["all"],
        "order": Seed | tuple[tuple[int, ...], ...],
        "weights": ByGroup,
        "proportions": ByGroup,
        "loss": str,
        "clip": Positive,
        "interventions": tuple[Mapping[str, Any], ...],
        "accumulate": Count,
        "autocast": str,
        "compile": bool | str,
        "validation": float,
        "seed": Seed,
        "checkpoint": Count,
    },
    "question": {"decision": str, "outcome": str, "kind": Literal["benefit", "burden"], "curve": str},
    "evaluations": {"per_decade": Annotated[int, Between(1, 10_000)]},
    "forecast": {
        "method": str,
        "budget": Positive,
        "copies": Count,
        "vary": Literal["order", "weights"],
        "share": float,
        "count": Count,
        "sample": Count,
        "seed": Seed,
    },
}

#: The file of `predict`, `simulate` and `equilibrium`.
PROBLEM_FILE: dict[str, dict[str, Any]] = {
    "problem": PROBLEM,
    "sgd": {
        "lr": Positive | Mapping[str, Any],
        "batch": Count,
        "momentum": float,
        "nesterov": bool,
        "clip": Positive,
        "weight_decay": NotNegative,
        "weights": _PER_GROUP,
        "proportions": _PER_GROUP,
        "train_bias": bool,
        "start_scale": NotNegative,
        "start": Mapping[str, Any],
        "intervention": str,
        "interventions": tuple[Mapping[str, Any], ...],
    },
    "times": {"until": Positive, "since": Positive, "evaluations": Annotated[int, Between(2, 10**9)], "at": Numbers},
}

#: Keys of earlier versions, and what to write instead.
OLD_KEYS = {("training", "schedule"): 'lr = {schedule = "Cosine", initial = 0.1, duration = 1000}'}


def read_tables(
    path: Path, schema: Mapping[str, Mapping[str, Any]], more: Collection[str] = ()
) -> dict[str, dict[str, Any]]:
    """All tables of the schema, empty where the file lacks one; those in `more` need only be tables."""
    found = read_toml(path)
    check_keys(found, [*schema, *more], path.name)
    for (table, key), now in OLD_KEYS.items():
        if isinstance(found.get(table), dict) and key in found[table]:
            raise KeyError(f"{path.name} [{table}]: a schedule is the value of the key that it changes, as {now}.")
    tables = {name: check_table(found.get(name, {}), hints, f"{path.name} [{name}]") for name, hints in schema.items()}
    for name in more:
        if name in found:
            keys = dict.fromkeys(found[name], Any) if isinstance(found[name], dict) else {}
            tables[name] = check_table(found[name], keys, f"{path.name} [{name}]")
    return tables


def made(kind: Any, given: Mapping[str, Any], table: str) -> Any:
    """The frozen dataclass with these options of the table, or an error that says what they should be.

    >>> from tiltmeter_lab.measures.line_spectrum import LineSpectrum
    >>> made(LineSpectrum, {"paths": ["within"], "lines": 8}, "measure").paths
    ('within',)
    >>> made(LineSpectrum, {"lines": "many"}, "measure")
    Traceback (most recent call last):
    TypeError: [measure]: `lines` should be a whole number. Found lines = 'many'.
    """
    hints = get_type_hints(kind)
    known = {field.name: hints[field.name] for field in fields(kind) if field.init and not field.name.startswith("_")}
    checked = check_table(given, known, f"[{table}]")
    return kind(**{key: _tuples(value) for key, value in checked.items()})


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
