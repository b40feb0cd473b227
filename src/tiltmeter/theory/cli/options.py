"""Options that verbs share: the problem, how it is trained, and the times, from the command line or a TOML file.

Every field is None unless given. So defaults are written only once, in the library, and an option on the command line
overrides the same key of the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from cyclopts import Parameter

from tiltmeter.cli.toml_file import PROBLEM, PROBLEM_FILE, check_keys, check_table, read_tables
from tiltmeter.interventions.intervention import Intervention
from tiltmeter.interventions.stored import intervention_from_json, intervention_named
from tiltmeter.interventions.stored_fields import field_from_json
from tiltmeter.schedules import schedule_from_table
from tiltmeter.theory.problem import cases
from tiltmeter.theory.problem.cases import Case
from tiltmeter.theory.problem.class_mixture import ClassMixture, class_mixture
from tiltmeter.theory.problem.mixture import Mixture
from tiltmeter.theory.problem.sgd import SGD
from tiltmeter.theory.problem.starts import Overlaps, Random
from tiltmeter.theory.problem.students import Linear, Softmax, Student
from tiltmeter.theory.problem.teacher_mixture import teacher_mixture
from tiltmeter.theory.problem.times import DEFAULT_TIMES
from tiltmeter.threads import check_fits

#: Keys of two labels that also make sense for several classes.
SHARED = ("rho", "shift", "variance", "overlap")
#: Keys that only several classes have.
OWN = ("classes", "similarity", "swapped", "class_bias", "softmax")
#: Keys of any groups and classes, by vectors or by overlaps.
BY_VECTORS = ("weight", "variance", "means", "teachers", "label_bias")
BY_GRAM = ("weight", "variance", "classes", "gram", "label_bias")


def has_classes(given: Mapping[str, Any]) -> bool:
    """Whether the keys describe several classes; keys of classes without classes are refused.

    >>> has_classes({"rho": 0.7, "classes": 3}), has_classes({"rho": 0.7})
    (True, False)
    """
    teachers = given.get("teachers")
    nested = isinstance(teachers, Mapping) and any(isinstance(one, Mapping) for one in teachers.values())
    if "classes" in given or nested:
        return True
    for name in OWN:
        if given.get(name) not in (None, False):
            raise ValueError(f"`{name}` needs `classes`, as in classes=3.")
    return False


def class_problem(given: Mapping[str, Any]) -> ClassMixture:
    """Two groups from a few numbers, or any groups and classes from their vectors or overlaps.

    >>> class_problem({"classes": 3, "rho": 0.7, "overlap": 0.5}).classes
    (0, 1, 2)
    """
    given = {name: value for name, value in given.items() if name != "softmax"}
    if "weight" in given:
        if "gram" in given:
            check_keys(given, BY_GRAM, "A problem with `classes` and `gram`")
            names = given.get("classes")
            if not isinstance(names, Sequence) or isinstance(names, str):
                raise ValueError(
                    f'`classes` should list the classes beside `gram`, as ["cat", "dog"]. Found {names!r}.'
                )
            return ClassMixture.from_gram(**_needed(given, "weight", "variance", "gram", "classes"))
        check_keys(given, BY_VECTORS, "A problem with teachers for every class")
        return ClassMixture(**_needed(given, "weight", "variance", "means", "teachers"))
    for name in given:
        if name not in SHARED and name not in OWN:
            raise ValueError(f"`{name}` is for two labels; with `classes` there are: {', '.join((*SHARED, *OWN[1:]))}.")
    known: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    if isinstance(known.get("variance"), Mapping):
        raise ValueError("`variance` should be two numbers beside `classes`, or come with `weight` for named groups.")
    return class_mixture(**known)


def _needed(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        if name not in given:
            raise KeyError(f"A problem with `weight` and classes also needs `{name}`.")
    return dict(given)


#: Bytes that one evaluation of a theory takes: about twenty curves of a few groups.
LOOK_BYTES = 4000
CASES = {
    function.__name__.replace("_", "-"): function
    for function in (
        cases.centred_crossing,
        cases.three_phases,
        cases.spurious_correlation,
        cases.no_crossing,
        cases.no_bias,
    )
}


#: The numbers of two groups with two labels.
NUMBERS = ("rho", "shift", "variance", "overlap", "shift_overlap", "label_bias", "thresholds", "mean_labels")
#: A problem on the command line.
Problem = Annotated[
    str | None,
    Parameter(
        help=f'A case ({", ".join(CASES)}), or numbers, as "rho=0.8, variance=(0.5, 1.5), overlap=0.5". rho: share of '
        "group +; shift: squared distance of the group means from the origin, |v|^2/d; overlap: of the teachers, -1 "
        "to 1; shift_overlap: of the shift with the teachers; label_bias: thresholds that the teachers add; instead of "
        "these two, thresholds or mean_labels. Several classes: classes, similarity, swapped, class_bias, softmax. "
        "Pairs are of groups + and -."
    ),
]


def problem_from_text(text: str) -> dict[str, Any]:
    """The table [problem] that a text stands for: a named case, or numbers as in Python; nothing in it is run.

    >>> problem_from_text("rho=0.8, variance=(0.5, 1.5)"), problem_from_text("no-bias")
    ({'rho': 0.8, 'variance': [0.5, 1.5]}, {'case': 'no-bias'})
    """
    if "=" not in text:
        return {"case": text.strip()}
    form = 'A problem should be written as "rho=0.8, variance=(0.5, 1.5), overlap=0.5"'
    try:
        positional, named = plain_arguments(text)
    except ValueError:
        positional, named = [text], {}
    if positional:
        raise ValueError(f"{form}. Found {text!r}.")
    return check_table({key: _lists(value) for key, value in named.items()}, PROBLEM, "The problem")


def _lists(value: Any) -> Any:
    return [_lists(part) for part in value] if isinstance(value, (list, tuple)) else value


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class SGDOptions:
    """How the student is trained."""

    lr: float | None = None
    "Learning rate; PyTorch's is this divided by d."
    batch: int | None = None
    "Points per step."
    momentum: float | None = None
    "Heavy-ball momentum (simulation only)."
    nesterov: bool | None = None
    "Nesterov's momentum (simulation only)."
    clip: float | None = None
    "Bound on the gradient norm (simulation only)."
    weight_decay: float | None = None
    "Weight decay."
    weights: tuple[float, float] | None = None
    "Loss weights of + and -."
    proportions: tuple[float, float] | None = None
    "How often + and - are drawn (default: their shares in the data)."
    train_bias: bool | None = None
    "Also train a bias of the student."
    start_scale: float | None = None
    "Start from random weights of this standard deviation (default: zero)."
    intervention: str | None = None
    "An intervention, such as \"GroupDRO(rate=5, by='draws')\" or UPGrad: what groups count during training."


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class TimeOptions:
    """The times of the curves."""

    until: float | None = None
    "Last time, in steps/d (default 200)."
    since: float | None = None
    "First time (default 0.01)."
    evaluations: int | None = None
    "Number of times, evenly spaced in log time (default 400)."


class Chosen(NamedTuple):
    """The result of the options: a problem, its training, the times, and the student."""

    problem: Mixture | ClassMixture
    sgd: SGD
    times: np.ndarray
    student: Student


def resolve(problem: str | None, sgd: SGDOptions | None, times: TimeOptions | None, config: Path | None) -> Chosen:
    """The problem, SGD and times from the options; command line over file over named case over defaults."""
    tables = _read(config) if config is not None else {}
    given_problem = {**tables.get("problem", {}), **({} if problem is None else problem_from_text(problem))}
    given_sgd = {**tables.get("sgd", {}), **_given(sgd)}
    given_times = {**tables.get("times", {}), **_given(times)}
    named = _case(given_problem.pop("case")) if "case" in given_problem else None
    if named is not None and given_problem:
        raise ValueError(f"A named case fixes the problem; drop {_names(given_problem)} or the case.")
    if named is None and not given_problem:
        raise ValueError(
            'No problem given: pass one, as "rho=0.8, variance=(0.5, 1.5)", a case such as centred-crossing, or a '
            "--config file."
        )
    if named is None and "lr" not in given_sgd:
        raise ValueError("`lr` is missing: pass --lr, as in --lr 0.1.")
    built = named.problem if named is not None else build_problem(given_problem)
    start: dict[str, Any] = {}
    if named is not None:
        start = {"lr": named.sgd.lr}
    trained, evaluations = build_sgd({**start, **given_sgd}, built), build_times(given_times, named)
    return Chosen(built, trained, evaluations, Softmax() if given_problem.get("softmax") else Linear())


def build_problem(given: Mapping[str, Any]) -> Mixture | ClassMixture:
    """A two-group problem from its named numbers, or any mixture from tables of weights, variances and geometry."""
    if set(given) == {"case"}:
        return _case(given["case"]).problem
    if has_classes(given):
        return class_problem(given)
    given = {name: value for name, value in given.items() if name not in OWN}
    if "weight" in given:
        vectors = "means" in given or "teachers" in given
        for name in ("variance", *(("means", "teachers") if vectors else ("gram",))):
            if name not in given:
                raise KeyError(f"A problem with `weight` also needs `{name}`.")
        if vectors:
            return Mixture.from_vectors(**_only(given, "weight", "variance", "means", "teachers", "label_bias"))
        return Mixture(**_only(given, "weight", "variance", "gram", "label_bias"))
    known = _only(given, *NUMBERS)
    known = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    for other, make in (
        ("thresholds", teacher_mixture.from_thresholds),
        ("mean_labels", teacher_mixture.from_mean_labels),
    ):
        if other in known:
            clash = {"shift_overlap", "label_bias", "thresholds", "mean_labels"} & set(known) - {other}
            if clash:
                raise ValueError(f"`{other}` replaces {_names(sorted(clash))}: give one of them.")
            return make(known.pop(other), **known)
    return teacher_mixture(**known)


def build_sgd(given: Mapping[str, Any], problem: Mixture | ClassMixture) -> SGD:
    """The SGD from its named numbers; schedules and more groups come from tables of a TOML file."""
    names = (field.name for field in fields(SGDOptions))
    known = _only(given, *names, "start", "interventions")
    if isinstance(known.get("lr"), Mapping):
        known["lr"] = schedule_from_table(known["lr"], "`lr`")
    for name in ("weights", "proportions"):
        if name in known:
            known[name] = _per_group(known[name], name, problem)
    if "start_scale" in known:
        known["start"] = Random(known.pop("start_scale"))
    elif "start" in known:
        known["start"] = Overlaps(**_only(known["start"], "M", "R", "Q", "bias", where="The start"))
    laws = [intervention_from_json(one) for one in known.pop("interventions", ())]
    if "intervention" in known:
        laws = [intervention_from_text(known.pop("intervention"))]
    return SGD(**known, interventions=tuple(laws))


def build_times(given: Mapping[str, Any], named: Case | None = None) -> np.ndarray:
    """Times evenly spaced in log time, or those listed under `at` in a TOML file."""
    known = _only(given, "until", "since", "evaluations", "at")
    if "at" in known:
        return np.asarray(known["at"], dtype=float)
    if not known:
        return DEFAULT_TIMES if named is None else named.times
    since, until, evaluations = known.get("since", 0.01), known.get("until", 200.0), known.get("evaluations", 400)
    if not 0 < since < until:
        raise ValueError(f"`since` should be positive and below `until`. Found since = {since}, until = {until}.")
    if evaluations < 2:
        raise ValueError(f"`evaluations` should be at least 2. Found evaluations = {evaluations}.")
    check_fits("evaluations", evaluations, LOOK_BYTES, "evaluations")
    return np.geomspace(since, until, evaluations)


def _per_group(values: Any, name: str, problem: Mixture | ClassMixture) -> dict[Any, Any]:
    if isinstance(values, Mapping):
        return {g: schedule_from_table(v, f"`{name}`") if isinstance(v, Mapping) else v for g, v in values.items()}
    if len(values) != len(problem.groups):
        raise ValueError(f"`{name}` should have one number per group ({len(problem.groups)}). Found {len(values)}.")
    return dict(zip(problem.groups, values, strict=True))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    return read_tables(path, PROBLEM_FILE)


def _given(options: Any) -> dict[str, Any]:
    return {} if options is None else {name: value for name, value in asdict(options).items() if value is not None}


def _only(given: Mapping[str, Any], *names: str, where: str = "The problem") -> dict[str, Any]:
    check_keys(given, names, where)
    return dict(given)


def _case(name: str) -> Case:
    if name not in CASES:
        raise KeyError(f"No case {name!r}. There are: {', '.join(CASES)}.")
    return CASES[name]()


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def intervention_from_text(text: str) -> Intervention:
    """The intervention that a text describes: a name, or a call with plain values; nothing in it is run.

    >>> intervention_from_text("GroupDRO(5, by='draws')")
    GroupDRO(by='draws', memory=64.0, every=1, rate=5, proportional=0.0, adjust=0.0, floor=0.0, begin='equal')
    >>> intervention_from_text("up-grad").cost(groups=2)
    3.0
    """
    name, bracket, rest = text.strip().partition("(")
    kind = intervention_named(name.strip())
    known = [field.name for field in fields(kind)]
    if not bracket:
        return kind()
    try:
        positional, named = plain_arguments(rest.rstrip().removesuffix(")") if rest.rstrip().endswith(")") else "(")
    except ValueError:
        raise ValueError(
            f"An intervention should be written as \"GroupDRO(rate=5, by='draws')\". Found {text!r}."
        ) from None
    for key in named:
        if key not in known:
            raise KeyError(f"{kind.__name__} has no field {key!r}. There are: {', '.join(known)}.")
    return kind(*positional, **{key: field_from_json(one) for key, one in named.items()})


def plain_arguments(text: str) -> tuple[list[Any], dict[str, Any]]:
    """What stands between the brackets of a call, as plain values; nothing in it is run.

    >>> plain_arguments("5, by='draws'")
    ([5], {'by': 'draws'})
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("not one call")
        return [ast.literal_eval(part) for part in call.args], {
            str(part.arg): ast.literal_eval(part.value) for part in call.keywords
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"not plain values: {text!r}") from None
