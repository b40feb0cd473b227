"""Origin: what made a trajectory, as plain JSON that rebuilds the objects it came from."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tiltmeter.record.labelled import JSON, plain_json
from tiltmeter.shown_text import quoted
from tiltmeter.version import __version__


@dataclass(frozen=True)
class Origin:
    """What made a trajectory: its source, its problem and settings, its seeds and the code version.

    >>> origin = Origin("theory", settings={"sgd": {"lr": 0.1}})
    >>> Origin.from_json(origin.to_json()) == origin
    True

    `problem` and `settings` hold plain JSON, as written by the `to_json` of the objects concerned, so that a loaded run
    can rebuild them: `Mixture.from_json(origin.problem)`, `Recipe.from_json(origin.recipe)`.

    Args:
        source: What made it: "theory", "simulation", "forecast", "training" or another word.
        problem: The problem as plain JSON; None: not known.
        settings: All settings as plain JSON.
        seeds: Seeds of the runs.
        version: Version of the code.
    """

    source: str
    problem: JSON = None
    settings: Mapping[str, JSON] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    version: str = __version__

    def __post_init__(self) -> None:
        if not isinstance(self.source, str) or not self.source:
            raise TypeError(f"`source` of an Origin should be a word. Found source = {quoted(self.source)}.")
        if not isinstance(self.version, str):
            raise TypeError(f"`version` of an Origin should be text. Found version = {quoted(self.version)}.")
        if not isinstance(self.settings, Mapping):
            raise TypeError(f"`settings` of an Origin should be a mapping. Found {type(self.settings).__name__}.")
        # A private copy: later changes of the caller's dictionaries do not affect a frozen value, and whatever could
        # not be written to disk is refused here rather than at the end of a long run.
        for name in ("problem", "settings"):
            try:
                copy = plain_json(getattr(self, name))
            except TypeError as error:
                raise TypeError(f"`{name}` of an Origin should be plain JSON: {error}.") from None
            object.__setattr__(self, name, copy)
        try:
            if isinstance(self.seeds, (str, bytes, Mapping)):
                raise TypeError
            object.__setattr__(self, "seeds", tuple(operator.index(seed) for seed in self.seeds))
        except TypeError:
            raise TypeError(
                f"`seeds` of an Origin should be a sequence of integers. Found {quoted(self.seeds)}."
            ) from None

    @property
    def measured(self) -> bool:
        """Whether the curves were read from the answers of a model to held-out points.

        >>> Origin("training").measured, Origin("predictions").measured, Origin("theory").measured
        (True, True, False)
        """
        return self.source in ("training", "predictions")

    @property
    def recipe(self) -> JSON:
        """The recipe of a training or forecast; None for theory, simulation and the user's own loops."""
        return self.settings.get("recipe")

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def to_json(self) -> dict[str, JSON]:
        return {
            "source": self.source,
            "problem": self.problem,
            "settings": dict(self.settings),
            "seeds": list(self.seeds),
            "version": self.version,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Origin:
        return cls(
            source=value["source"],
            problem=value.get("problem"),
            settings=value.get("settings", {}),
            seeds=value.get("seeds", ()),
            version=value.get("version", "unknown"),
        )
