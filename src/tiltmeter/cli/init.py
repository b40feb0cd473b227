"""`tiltmeter init`: a commented TOML file for a table, ready for `tiltmeter train`."""

from __future__ import annotations

import json as machine
import os
from pathlib import Path
from typing import Any

from tiltmeter.cli.terminal import Json
from tiltmeter.data.labels import plain_label

#: A column with more different values is no label or group.
FEW = 20
USUAL_LABELS = ("label", "target", "y", "class", "outcome", "income", "wage")
#: Labels that are usually the yes; else the last in sorted order is guessed.
USUAL_YES = ("1", "true", "yes", "y", "positive", "approved", "accepted", "granted", "admitted", "hired", "good")
#: Labels that a person would rather not get.
BURDENS = ("default", "fraud", "denied", "reject", "fail", "recid", "reoffend", "arrest", "churn", "bad", "risk")
USUAL_GROUPS = ("group", "sex", "gender", "race", "ethnicity", "age_group")


def init(
    table: Path,
    *,
    to: Path = Path("training.toml"),
    label: str | None = None,
    positive: str | None = None,
    group: str | None = None,
    json: Json = False,
) -> None:
    """Write a commented TOML file that `tiltmeter forecast` and `tiltmeter train` read, for your table.

    Parameters
    ----------
    table
        A .csv, .parquet or .feather file.
    to
        The new file.
    label
        The column to predict (default: a guess, which the file marks as one).
    positive
        The label that is a yes of the model, of two labels (default: a guess, which the file marks as one).
    group
        The column of groups (default: a guess, which the file marks as one).
    """
    from tiltmeter.data.any_frame import any_frame

    if to.exists():
        raise FileExistsError(f"{to} already exists and is never overwritten. Choose a new name with --to.")
    if not to.parent.is_dir():
        raise FileNotFoundError(f"--to should lie in an existing folder. Found none at {to.parent}.")
    frame = any_frame(table)
    few = {str(name): int(frame[name].nunique()) for name in frame.columns}
    chosen_label = _column(few, label, "label", USUAL_LABELS, last=True, apart=group)
    chosen_group = _column(few, group, "group", USUAL_GROUPS, last=False, apart=chosen_label)
    if chosen_label == chosen_group:
        raise ValueError(f"--label and --group should be two columns. Found {chosen_label!r} for both.")
    missing = {str(name): int(count) for name, count in frame.isna().sum().items() if count}
    chosen_yes = _positive(frame[chosen_label], positive)
    guesses = {"label": label, "positive label": positive if chosen_yes is not None else "none", "group": group}
    guesses["question"] = None if chosen_yes is not None else "none"
    guessed = [what for what, given in guesses.items() if given is None]
    text = _toml(table, to, frame, (chosen_label, chosen_yes, chosen_group), guessed, few, missing)
    to.write_text(text, encoding="utf-8")
    chosen = {"label": chosen_label, "positive": chosen_yes, "group": chosen_group}
    if json:
        print(machine.dumps({"file": str(to), **chosen, "missing": missing}))
        return
    marked = f" (guessed: {', '.join(guessed)})" if guessed else ""
    print(f"Wrote {to}: {', '.join(f'{what} {value}' for what, value in chosen.items() if value is not None)}{marked}.")
    print(f"Next: tiltmeter forecast {to}")
    print(f"      tiltmeter train {to} --to runs/first")
    print("      tiltmeter report runs/first")


def _column(
    few: dict[str, int], given: str | None, what: str, usual: tuple[str, ...], last: bool, apart: str | None
) -> str:
    if given is not None:
        if given not in few:
            raise KeyError(f"--{what}: no column {given!r}. There are: {', '.join(few)}.")
        return given
    fit = [name for name, count in few.items() if 2 <= count <= FEW and name != apart]
    named = [name for name in fit if name.lower() in usual]
    two = [name for name in fit if few[name] == 2] or fit
    for choice in (named, two):
        if choice:
            return choice[-1 if last else 0]
    raise ValueError(f"No column with 2 to {FEW} different values is left for the {what}: name one with --{what}.")


def _positive(values: Any, given: str | None) -> Any:
    """The label that is a yes, of two labels; None of more."""
    found = sorted((plain_label(value) for value in values.dropna().unique().tolist()), key=str)
    if given is not None:
        named = next((value for value in found if str(value) == given), None)
        if named is None or len(found) != 2:
            there = ", ".join(map(str, found[:10]))
            raise KeyError(f"--positive should be one of two labels of {values.name}. Found {given!r}, of {there}.")
        return named
    if len(found) != 2:
        return None
    usual = [value for value in found if str(value).lower() in USUAL_YES]
    return usual[0] if len(usual) == 1 else found[-1]


def _toml(
    table: Path,
    to: Path,
    frame: Any,
    chosen: tuple[str, Any, str],
    guessed: list[str],
    few: dict[str, int],
    missing: dict[str, int],
) -> str:
    label, yes, group = chosen
    marks = ["  # guessed: check it" if what in guessed else "" for what in ("label", "group")]
    check = "guessed, check it: " if "positive label" in guessed else ""
    positive = "" if yes is None else f"positive = {_value(yes)}  # {check}the label that is a yes of the model\n"
    columns = [str(name) for name in frame.columns if name not in (label, group)]
    # Names and identifiers are not used as features.
    usable = [name for name in columns if frame[name].dtype.kind in "fiub" or few[name] <= 1000]
    gaps = ", ".join(f"{name} ({count})" for name, count in missing.items())
    about = f"# Missing values: {_comment(gaps)}\n" if gaps else ""
    source = os.path.relpath(table, to.parent).replace(os.sep, "/")
    rows = ",\n".join(f"    {_quoted(name)}" for name in usable)
    return f"""# For `tiltmeter forecast` and `tiltmeter train`: {len(frame):,} rows of {_comment(table.name)}.
[data]
source = {_quoted(source)}
label = {_quoted(label)}{marks[0]}
{positive}group = {_quoted(group)}{marks[1]}
# The features. The group is not among them; add it to let the network see it.
columns = [
{rows}
]
{about}missing = "drop"  # rows with missing values: drop (counted by group), impute or error
held_out = 0.2  # share of every group that is held out: judged, not trained on
seed = 0

{_question(yes)}[model]
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


def _question(yes: Any) -> str:
    """A table [question] with a guess of what the decision does to a person, for two labels."""
    if yes is None:
        return ""
    kind = "burden" if any(word in str(yes).lower() for word in BURDENS) else "benefit"
    return f"""[question]  # what a positive decision means to a person
kind = "{kind}"  # guessed, check it: benefit (whom does it miss?) or burden (whom does it meet wrongly?)
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
    return machine.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    from tiltmeter.shown_text import visible

    return visible(text).replace("\n", " ").replace("\t", " ")
