"""`tiltmeter reproduce` where tiltmeter-lab, which brings the verb, is not installed."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tiltmeter.plugins import WITHOUT_LAB


def reproduce(*names: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:  # noqa: ARG001
    """Run published experiments again and report, claim by claim, whether they hold.

    Parameters
    ----------
    names
        Names of the experiments.
    """
    raise ModuleNotFoundError(WITHOUT_LAB, name="tiltmeter_lab")
