"""Options of problems with several classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from tiltmeter.cli.flags import Switch


@Parameter(name="*", negative_iterable=())
@dataclass(frozen=True, kw_only=True)
class ClassOptions:
    """Several classes instead of two labels."""

    classes: int | None = None
    "Number of classes, each with its own teacher; --overlap is then that of a class between the groups."
    similarity: float | None = None
    "Overlap of the teachers of the first two classes within each group."
    swapped: Switch = False
    "Swap the teachers of the first two classes in group -."
    class_bias: Annotated[tuple[float, ...] | None, Parameter(consume_multiple=True)] = None
    "Bias of each class, which makes it more or less frequent; one number per class."
    softmax: Switch = False
    "Train on cross-entropy instead of the squared error."
