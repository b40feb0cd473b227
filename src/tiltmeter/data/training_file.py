"""Training files: what a table is probably about, and the commented TOML file that says so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from tiltmeter.data.labels import plain_label
from tiltmeter.shown_text import visible

#: A column with more different values is no label or group.
FEW = 20
USUAL_LABELS = ("label", "target", "y", "class", "outcome", "income", "wage")
#: Labels that are usually the yes; else the last in sorted order is guessed.
PLAIN_YES = ("1", "true", "yes", "y", "positive")
USUAL_YES = (*PLAIN_YES, "approved", "accepted", "granted", "admitted", "hired", "good")
#: Labels that a person would rather not get.
BURDENS = ("default", "fraud", "denied", "reject", "fail", "recid", "reoffend", "arrest", "churn", "bad", "risk")
USUAL_GROUPS = ("group", "sex", "gender", "race", "ethnicity", "age_group")


@dataclass(frozen=True)
class TableTask:
    """What to predict in a table and for which groups; `guessed` names what nobody said.

    `choices` are the columns with few values, and those of every column: what could be label or group.
    """

    label: str
    positive: Any
    group: str
    kind: Literal["benefit", "burden"] | None
    guessed: tuple[str, ...]
    choices: dict[str, list[Any]]


def table_task(
    frame: Any,
    label: str | None = None,
    positive: str | None = None,
    group: str | None = None,
    kind: Literal["benefit", "burden"] | None = None,
) -> TableTask:
    """Guess what was not said about a table.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sex": ["f", "m"] * 20, "age": range(40), "hired": ["no", "yes", "yes", "no"] * 10})
    >>> found = table_task(frame)
    >>> found.label, found.positive, found.group, found.kind
    ('hired', 'yes', 'sex', 'benefit')
    >>> table_task(frame.rename(columns={"hired": "reoffended"})).kind
    'burden'
    """
    few = {str(name): int(frame[name].nunique()) for name in frame.columns}
    chosen = _column(few, label, "label", USUAL_LABELS, last=True, apart=group)
    groups = _column(few, group, "group", USUAL_GROUPS, last=False, apart=chosen)
    if chosen == groups:
        raise ValueError(f"`label` and `group` should be two columns. Found {chosen!r} for both.")
    yes = _positive(frame[chosen], positive)
    said = {"label": label, "positive label": positive, "group": group, "question": kind}
    needed = said if yes is not None else ("label", "group")
    guessed = tuple(what for what in needed if said[what] is None)
    meaning = f"{yes} {chosen}" if str(yes).lower() in PLAIN_YES else str(yes)
    burden = any(word in meaning.lower() for word in BURDENS)
    kind = None if yes is None else kind or ("burden" if burden else "benefit")
    choices = {name: _values(frame[name]) for name, count in few.items() if 2 <= count <= FEW}
    return TableTask(chosen, yes, groups, kind, guessed, choices)


def _column(
    few: dict[str, int], given: str | None, what: str, usual: tuple[str, ...], last: bool, apart: str | None
) -> str:
    if given is not None:
        if given not in few:
            raise KeyError(f"`{what}`: no column {given!r}. There are: {', '.join(few)}.")
        return given
    fit = [name for name, count in few.items() if 2 <= count <= FEW and name != apart]
    named = [name for name in fit if name.lower() in usual]
    two = [name for name in fit if few[name] == 2] or fit
    for choice in (named, two):
        if choice:
            return choice[-1 if last else 0]
    raise ValueError(f"No column with 2 to {FEW} different values is left for the {what}: say which column it is.")


def _values(column: Any) -> list[Any]:
    return sorted((plain_label(value) for value in column.dropna().unique().tolist()), key=str)


def _positive(column: Any, given: str | None) -> Any:
    """The label that is a yes, of two labels; None of more."""
    found = _values(column)
    if given is not None:
        named = next((value for value in found if str(value) == given), None)
        if named is None or len(found) != 2:
            there = ", ".join(map(str, found[:10]))
            raise KeyError(f"`positive` should be one of two labels of {column.name}. Found {given!r}, of {there}.")
        return named
    if len(found) != 2:
        return None
    usual = [value for value in found if str(value).lower() in USUAL_YES]
    return usual[0] if len(usual) == 1 else found[-1]


def missing_values(frame: Any) -> dict[str, int]:
    """How many values are missing, by column."""
    return {str(name): int(count) for name, count in frame.isna().sum().items() if count}


def training_file(task: TableTask, frame: Any, source: str, name: str) -> str:
    """The TOML file of `tiltmeter forecast` and `tiltmeter train` for this table, which lies at `source`."""
    marks = ["  # guessed: check it" if what in task.guessed else "" for what in ("label", "group")]
    check = "guessed, check it: " if "positive label" in task.guessed else ""
    yes = task.positive
    positive = "" if yes is None else f"positive = {_value(yes)}  # {check}the label that is a yes of the model\n"
    columns = [column for column in frame.columns if str(column) not in (task.label, task.group)]
    # Names and identifiers are not used as features.
    usable = [str(one) for one in columns if frame[one].dtype.kind in "fiub" or frame[one].nunique() <= 1000]
    gaps = ", ".join(f"{name} ({count})" for name, count in missing_values(frame).items())
    about = f"# Missing values: {_comment(gaps)}\n" if gaps else ""
    rows = ",\n".join(f"    {_quoted(name)}" for name in usable)
    return f"""# For `tiltmeter forecast` and `tiltmeter train`: {len(frame):,} rows of {_comment(name)}.
[data]
source = {_quoted(source)}
label = {_quoted(task.label)}{marks[0]}
{positive}group = {_quoted(task.group)}{marks[1]}
# The features. The group is not among them; add it to let the network see it.
columns = [
{rows}
]
{about}missing = "drop"  # rows with missing values: drop (counted by group), impute or error
held_out = 0.2  # share of every group that is held out: judged, not trained on
seed = 0

{_question(task)}[model]
hidden = [64]  # units of each hidden layer
activation = "relu"  # relu, tanh or gelu

[training]
optimiser = "adamw"  # sgd, adam or adamw
lr = 0.001  # or a schedule: {{schedule = "Cosine", initial = 0.001, duration = 2000}}
steps = 2000
batch = 32
# loss = "logistic"  # square, logistic, hinge or cross-entropy; the one that fits the labels if left out
# weights = {{ {_quoted("a group")} = 2.0 }}  # how much the loss of a group counts
seed = 0

[evaluations]
per_decade = 20  # evaluations for every factor of ten in steps
"""


def _question(task: TableTask) -> str:
    """A table [question] that says what the decision does to a person, for two labels."""
    kind = task.kind
    if kind is None:
        return ""
    check = "guessed, check it: " if "question" in task.guessed else ""
    return f"""[question]  # what a positive decision means to a person
kind = "{kind}"  # {check}benefit (whom does it miss?) or burden (whom does it meet wrongly?)
# decision = "{"flagged" if kind == "burden" else "approved"}"  # in the past tense; with it, sentences use your words
# outcome = "{"reoffended" if kind == "burden" else "repaid"}"  # what the decision foretells

"""


def _value(value: Any) -> str:
    """A label as TOML: a number, true or false, or a text."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else _quoted(str(value))


def _quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return visible(text).replace("\n", " ").replace("\t", " ")
