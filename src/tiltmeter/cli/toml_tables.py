"""toml_tables: the tables and keys of the files that the verbs read, with the kind and range of every value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from tiltmeter.cli.toml_file import read_toml
from tiltmeter.cli.toml_schema import Between, check_keys, check_table

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
        "look": float,
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
        "held_out": float,
        "seed": Seed,
        "checkpoint": Count,
    },
    "looks": {"per_decade": Annotated[int, Between(1, 10_000)]},
    "forecast": {
        "route": str,
        "sample": Count,
        "real_steps": Annotated[int, Between(0, 10**9)],
        "count": Count,
        "replicas": Count,
        "share": float,
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
        "law": str,
        "interventions": tuple[Mapping[str, Any], ...],
    },
    "times": {"until": Positive, "since": Positive, "looks": Annotated[int, Between(2, 10**9)], "at": Numbers},
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
