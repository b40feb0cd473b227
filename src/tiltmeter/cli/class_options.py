"""Options of problems with several classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from tiltmeter.cli.flags import Switch
from tiltmeter.cli.options import ProblemOptions, SGDOptions, TimeOptions, build_sgd, build_times
from tiltmeter.problem.class_mixture import ClassMixture
from tiltmeter.problem.class_mixture_of_two import class_mixture
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.student import Linear, Softmax, Student

#: Options of two labels that also make sense for several classes.
SHARED = ("rho", "shift", "variance", "overlap")


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """Several classes instead of two labels."""

    classes: int | None = None
    "So many classes, each with its own teacher; --overlap is then that of a class between the groups."
    similarity: float | None = None
    "Overlap of the teachers of the first two classes within each group."
    swapped: Switch = False
    "The first two classes of - look like the second and the first of +."
    class_bias: Annotated[tuple[float, ...] | None, Parameter(consume_multiple=True)] = None
    "What makes each class more or less frequent, one number per class."
    softmax: Switch = False
    "Train on cross-entropy instead of the squared error."

    @property
    def given(self) -> bool:
        return self.classes is not None

    def check(self) -> None:
        """Options of classes need --classes."""
        for name, value in asdict(self).items():
            if name != "classes" and value not in (None, False) and not self.given:
                raise ValueError(f"--{name.replace('_', '-')} needs --classes, as in --classes 3.")

    @property
    def student(self) -> Student:
        return Softmax() if self.softmax else Linear()


def resolve_classes(
    options: ClassOptions, problem: ProblemOptions | None, sgd: SGDOptions | None, times: TimeOptions | None
) -> tuple[ClassMixture, SGD, np.ndarray]:
    """The problem, SGD and times of several classes, from the command line alone."""
    given = {name: value for name, value in asdict(problem or ProblemOptions()).items() if value is not None}
    for name in given:
        if name not in SHARED:
            raise ValueError(f"--{name.replace('_', '-')} is for two labels; with --classes there are: " + _flags())
    own = {"classes": options.classes, "similarity": options.similarity, "class_bias": options.class_bias}
    own = {name: value for name, value in own.items() if value is not None}
    built = class_mixture(**given, **own, swapped=options.swapped)  # type: ignore[arg-type]
    trained = {name: value for name, value in asdict(sgd or SGDOptions()).items() if value is not None}
    if "lr" not in trained:
        raise ValueError("`lr` is missing: pass --lr, as in --lr 0.1.")
    looks = {name: value for name, value in asdict(times or TimeOptions()).items() if value is not None}
    return built, build_sgd(trained, built), build_times(looks)


def _flags() -> str:
    return ", ".join(f"--{name}" for name in (*SHARED, "similarity", "swapped", "class-bias")) + "."
