"""Presets: the named cases as states of the theory page."""

from __future__ import annotations

from typing import Any

from tiltmeter.problem import cases

_CASES = (
    cases.centred_crossing,
    cases.three_phases,
    cases.spurious_correlation,
    cases.no_crossing,
    cases.no_bias,
)


def presets() -> list[dict[str, Any]]:
    """Name, first sentence and numbers of every named case, as the page's theory takes them.

    >>> [one["name"] for one in presets()][:2]
    ['centred crossing', 'three phases']
    """
    found = []
    for make in _CASES:
        problem, sgd, times = make()
        gram = problem.gram.values
        shift = float(gram[0, 0])
        alignment = [float(gram[0, 2 + g]) / shift**0.5 if shift > 0 else 0.0 for g in (0, 1)]
        found.append(
            {
                "name": make.__name__.replace("_", " "),
                "about": " ".join((make.__doc__ or "").split("\n\n")[0].split()),
                "state": {
                    "rho": float(problem.weight.values[0]),
                    "shift": shift,
                    "variance": problem.variance.values.tolist(),
                    "overlap": float(gram[2, 3]),
                    "alignment": alignment,
                    "label_bias": problem.label_bias.values.tolist(),
                    "lr": float(sgd.lr),  # type: ignore[arg-type]
                    "weights": [1.0, 1.0],
                    "until": float(times[-1]),
                },
            }
        )
    return found
