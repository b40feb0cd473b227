"""The catalogue of named experiments: the module of each, and what such a module contains."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import tiltmeter as tm

if TYPE_CHECKING:
    from tiltmeter_lab.claim import Claim

#: Name on the command line -> module of this package. A module is imported only when it is needed.
EXPERIMENTS: dict[str, str] = {
    # dynamics of bias
    "order-parameters": "order_parameters",
    "spurious-correlation": "spurious_correlation",
    "bias-crossing": "bias_crossing",
    "three-phases": "three_phases",
    "phase-diagram": "phase_diagram",
    "deeper-wider": "deeper_wider",
    "other-protocols": "other_protocols",
    "learning-rates": "learning_rates",
    "equilibrium-bias": "equilibrium_bias",
    "cifar-groups": "cifar_groups",
    "rotated-mnist": "rotated_mnist",
    "tabular-groups": "tabular_groups",
    "celeba-pairs": "celeba_pairs",
    "utkface-ages": "utkface_ages",
    "utkface-tools": "utkface_tools",
    "false-alarms": "false_alarms",
    # questions without a published answer
    "memorisation": "memorisation",
    "multi-class": "multi_class",
    "warm-start": "warm_start",
    "order-of-groups": "order_of_groups",
    "overparametrisation-gap": "overparametrisation_gap",
    "pipeline-atlas": "pipeline_atlas",
    "second-settings": "second_settings",
    # forecasts
    "forecast-accuracy": "forecast_accuracy",
    "forecast-crossings": "forecast_crossings",
    "forecast-fine-tuning": "forecast_fine_tuning",
    # interventions
    "group-dro-rings": "group_dro_rings",
    "upweight-or-upsample": "upweight_or_upsample",
    "equalising-weights": "equalising_weights",
    "no-go": "no_go",
    "normalised-gradients": "normalised_gradients",
    "levelling-down": "levelling_down",
    "two-stage-inference": "two_stage_inference",
    "late-reopening": "late_reopening",
    "optimiser-or-speed": "optimiser_or_speed",
    "erasure-reverses": "erasure_reverses",
    "bar-actions": "bar_actions",
    "cures": "cures",
    "advice-ranks": "advice_ranks",
    # simplicity biases
    "spectral-1d": "spectral_1d",
    "spectral-interpolation": "spectral_interpolation",
    "spectral-double-descent": "spectral_double_descent",
    "spectral-kernel": "spectral_kernel",
    "principal-components": "principal_components",
    "low-dimensional-dependence": "low_dimensional_dependence",
    "distributional": "distributional",
    "low-rank-weights": "low_rank_weights",
    "low-rank-embeddings": "low_rank_embeddings",
    "incremental-rank": "incremental_rank",
    "low-sensitivity": "low_sensitivity",
    "bias-atlas": "bias_atlas",
    "bias-spot-checks": "bias_spot_checks",
    # two-layer networks beyond linear separability, and shortcuts
    "early-alignment": "early_alignment",
    "four-neurons": "four_neurons",
    "growth-phase": "growth_phase",
    "domino": "domino",
    "shortcuts": "shortcuts",
    "diffroar": "diffroar",
    # classes and curvature
    "minority-drop": "minority_drop",
    "hessian-rank": "hessian_rank",
    "edge-of-stability": "edge_of_stability",
    "group-measures": "group_measures",
    "measures-on-people": "measures_on_people",
    "random-networks": "random_networks",
}

#: Runs of one experiment by name; claims and pictures are computed from them.
Runs: TypeAlias = "Mapping[str, tm.Trajectory]"

#: `keep(name, make)` returns the run of this name: made now, or loaded if an interrupted experiment already has it.
Keep: TypeAlias = "Callable[[str, Callable[[], tm.Trajectory]], tm.Trajectory]"


class Experiment(Protocol):
    """What the module of an experiment has at its top level.

    An optional function `tables(runs)` returns further numbers, as a mapping from titles to `report.page.Table`s.
    """

    #: One line: what it shows.
    TITLE: str
    #: The paper that reported it.
    PAPER: str
    #: Frozen dataclasses of plain numbers and strings: `quick` takes seconds to a minute, `full` is the published
    #: setting. Each has a field `seeds`; `--seeds` sets it and every field whose name ends in `_seeds`.
    QUICK: Any
    FULL: Any
    #: Data sets (names of `data/`) that must be present, () for none.
    NEEDS: tuple[str, ...]

    @staticmethod
    def run(setting: Any, keep: Keep) -> Runs:
        """Make all runs, each through `keep`, with seeds 0, 1, ... `setting.seeds` - 1."""
        ...

    @staticmethod
    def claims(runs: Runs) -> tuple[Claim, ...]:
        """Return the published findings with their verdicts, computed only from the runs."""
        ...

    @staticmethod
    def pictures(runs: Runs) -> Mapping[str, Any]:
        """Altair charts by title."""
        ...


@dataclass(frozen=True)
class Entry:
    """One line of the list of experiments."""

    name: str
    title: str
    paper: str
    needs: tuple[str, ...]


def entry_of(name: str) -> Entry:
    """Return title, paper and data of an experiment, read from its file without importing it.

    >>> entry_of("three-phases").needs
    ()
    """
    loaded: Any = sys.modules.get(f"tiltmeter_lab.named.{EXPERIMENTS[known(name)]}")
    if loaded is not None:
        return Entry(name, loaded.TITLE, loaded.PAPER, tuple(loaded.NEEDS))
    text = (Path(__file__).parent / "named" / f"{EXPERIMENTS[known(name)]}.py").read_text(encoding="utf-8")
    found: dict[str, Any] = {}
    for node in ast.parse(text).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id in ("TITLE", "PAPER", "NEEDS"):
            found[target.id] = ast.literal_eval(node.value)  # type: ignore[attr-defined]
    return Entry(name, found["TITLE"], found["PAPER"], tuple(found["NEEDS"]))


def find(name: str) -> Any:
    """The module of the experiment with this name.

    >>> try:
    ...     find("perpetual-motion")
    ... except KeyError as error:
    ...     print(error.args[0].split(".")[0])
    No experiment 'perpetual-motion'
    """
    return import_module(f"tiltmeter_lab.named.{EXPERIMENTS[known(name)]}")


def known(name: str) -> str:
    """Return the name if there is such an experiment; else raise a KeyError that suggests a similar one.

    >>> try:
    ...     known("bias-crosing")
    ... except KeyError as error:
    ...     print(error.args[0].split(" There are")[0])
    No experiment 'bias-crosing'. Did you mean 'bias-crossing'?
    """
    if name in EXPERIMENTS:
        return name
    # The suggestion ignores case, and "_" against "-".
    near = get_close_matches(name.lower().replace("_", "-"), EXPERIMENTS, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise KeyError(f"No experiment {name!r}.{guess} There are: {', '.join(EXPERIMENTS) or 'none'}.")


def make_now(name: str, make: Callable[[], tm.Trajectory]) -> tm.Trajectory:  # noqa: ARG001
    """Make a run without storing it: the `keep` of an experiment that needs no directory."""
    return make()
