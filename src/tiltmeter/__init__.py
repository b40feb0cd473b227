"""tiltmeter: which group a model will favour, when during training, and why."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tiltmeter.version import __version__

if TYPE_CHECKING:
    # the problem and how it is trained
    from tiltmeter import cases as cases

    # for other programs
    from tiltmeter import export as export
    from tiltmeter.activation import Erf as Erf
    from tiltmeter.activation import Identity as Identity
    from tiltmeter.activation import ReLU as ReLU
    from tiltmeter.activation import Tanh as Tanh

    # questions
    from tiltmeter.analysis.agreement import agreement as agreement
    from tiltmeter.analysis.crossings import Crossing as Crossing
    from tiltmeter.analysis.crossings import crossings as crossings
    from tiltmeter.analysis.drivers import drivers as drivers
    from tiltmeter.analysis.grids import crossing_count as crossing_count
    from tiltmeter.analysis.grids import leader as leader
    from tiltmeter.analysis.phases import phases as phases
    from tiltmeter.analysis.stopping import stopping as stopping

    # real training
    from tiltmeter.data.grouped import GroupedData as GroupedData

    # before training
    from tiltmeter.forecast.best_weights import best_weights as best_weights
    from tiltmeter.forecast.criteria import FinalGap as FinalGap
    from tiltmeter.forecast.criteria import GapArea as GapArea
    from tiltmeter.forecast.criteria import WorstGroupArea as WorstGroupArea
    from tiltmeter.forecast.criteria import WorstGroupLoss as WorstGroupLoss
    from tiltmeter.forecast.front import forecast as forecast
    from tiltmeter.forecast.tangent import tangent as tangent
    from tiltmeter.losses import CrossEntropy as CrossEntropy
    from tiltmeter.losses import Hinge as Hinge
    from tiltmeter.losses import Logistic as Logistic
    from tiltmeter.losses import Loss as Loss
    from tiltmeter.losses import Square as Square
    from tiltmeter.measures.direct import measure as measure
    from tiltmeter.measures.group_metric import GroupMetric as GroupMetric
    from tiltmeter.measures.sometimes import Sometimes as Sometimes
    from tiltmeter.mixture import Mixture as Mixture
    from tiltmeter.observables.criteria import AccuracyParity as AccuracyParity
    from tiltmeter.observables.criteria import EqualisedOdds as EqualisedOdds
    from tiltmeter.observables.criteria import EqualOpportunity as EqualOpportunity
    from tiltmeter.observables.criteria import PredictiveParity as PredictiveParity
    from tiltmeter.observables.criteria import StatisticalParity as StatisticalParity
    from tiltmeter.observables.criteria import WorstGroupError as WorstGroupError
    from tiltmeter.observables.quadrature import Sobol as Sobol
    from tiltmeter.optimisers import Adam as Adam
    from tiltmeter.optimisers import AdamW as AdamW
    from tiltmeter.optimisers import SignSGD as SignSGD

    # records
    from tiltmeter.record import Origin as Origin
    from tiltmeter.record import Recorder as Recorder
    from tiltmeter.record import Trajectory as Trajectory
    from tiltmeter.record import at as at
    from tiltmeter.record import check as check
    from tiltmeter.record import every as every
    from tiltmeter.record import load as load
    from tiltmeter.record import log_spaced as log_spaced
    from tiltmeter.record import save as save
    from tiltmeter.record import stack as stack
    from tiltmeter.report.runs import report as report
    from tiltmeter.schedule import Cosine as Cosine
    from tiltmeter.schedule import PowerDecay as PowerDecay
    from tiltmeter.schedule import Steps as Steps
    from tiltmeter.schedule import Warmup as Warmup
    from tiltmeter.sgd import SGD as SGD

    # simulation
    from tiltmeter.simulation.chain import Chain as Chain
    from tiltmeter.simulation.data import Fresh as Fresh
    from tiltmeter.simulation.data import Repeated as Repeated
    from tiltmeter.simulation.direct import Direct as Direct
    from tiltmeter.simulation.moments import moments as moments
    from tiltmeter.simulation.simulate import simulate as simulate

    # finite dimension
    from tiltmeter.simulation.train_to_equilibrium import train_to_equilibrium as train_to_equilibrium
    from tiltmeter.start import Overlaps as Overlaps
    from tiltmeter.start import Random as Random
    from tiltmeter.start import Zero as Zero
    from tiltmeter.student import Linear as Linear
    from tiltmeter.student import Network as Network

    # exact theory
    from tiltmeter.theory.ends import asymptotes as asymptotes
    from tiltmeter.theory.ends import final_leader as final_leader
    from tiltmeter.theory.ends import first_leader as first_leader
    from tiltmeter.theory.ends import initial_rates as initial_rates
    from tiltmeter.theory.equilibrium import coupled_equilibrium as coupled_equilibrium
    from tiltmeter.theory.equilibrium import equilibrium as equilibrium
    from tiltmeter.theory.incompatibility import incompatibility as incompatibility
    from tiltmeter.theory.optimal_weights import optimal_weights as optimal_weights
    from tiltmeter.theory.predict import predict as predict
    from tiltmeter.theory.separability import separability as separability
    from tiltmeter.theory.stability import stability_limit as stability_limit
    from tiltmeter.theory.stability import timescales as timescales
    from tiltmeter.training.adapters.hugging_face import hugging_face_callback as hugging_face_callback
    from tiltmeter.training.adapters.ignite import ignite_handler as ignite_handler
    from tiltmeter.training.adapters.lightning import lightning_callback as lightning_callback
    from tiltmeter.training.adapters.skorch import skorch_callback as skorch_callback
    from tiltmeter.training.ensemble import ensemble as ensemble
    from tiltmeter.training.loop import train as train
    from tiltmeter.training.probe import Probe as Probe
    from tiltmeter.two_groups import teacher_mixture as teacher_mixture

# Where each daily name lives. Looked up on first use, so that `import tiltmeter` stays as light as xarray.
_HOMES = {
    # the problem and how it is trained
    "Mixture": "mixture",
    "teacher_mixture": "two_groups",
    "SGD": "sgd",
    "Zero": "start",
    "Random": "start",
    "Overlaps": "start",
    "Linear": "student",
    "Network": "student",
    "Erf": "activation",
    "ReLU": "activation",
    "Tanh": "activation",
    "Identity": "activation",
    "Adam": "optimisers",
    "AdamW": "optimisers",
    "SignSGD": "optimisers",
    "PowerDecay": "schedule",
    "Cosine": "schedule",
    "Warmup": "schedule",
    "Steps": "schedule",
    # exact theory
    "predict": "theory.predict",
    "timescales": "theory.stability",
    "stability_limit": "theory.stability",
    "initial_rates": "theory.ends",
    "asymptotes": "theory.ends",
    "first_leader": "theory.ends",
    "final_leader": "theory.ends",
    "Sobol": "observables.quadrature",
    # simulation at finite d
    "simulate": "simulation.simulate",
    "moments": "simulation.moments",
    "Chain": "simulation.chain",
    "Direct": "simulation.direct",
    "Fresh": "simulation.data",
    "Repeated": "simulation.data",
    # the fully trained student
    "Loss": "losses",
    "Square": "losses",
    "Logistic": "losses",
    "Hinge": "losses",
    "equilibrium": "theory.equilibrium",
    "coupled_equilibrium": "theory.equilibrium",
    "separability": "theory.separability",
    "optimal_weights": "theory.optimal_weights",
    "incompatibility": "theory.incompatibility",
    "StatisticalParity": "observables.criteria",
    "EqualOpportunity": "observables.criteria",
    "EqualisedOdds": "observables.criteria",
    "AccuracyParity": "observables.criteria",
    "PredictiveParity": "observables.criteria",
    "WorstGroupError": "observables.criteria",
    "train_to_equilibrium": "simulation.train_to_equilibrium",
    # before training
    "forecast": "forecast.front",
    "tangent": "forecast.tangent",
    "best_weights": "forecast.best_weights",
    "WorstGroupLoss": "forecast.criteria",
    "WorstGroupArea": "forecast.criteria",
    "FinalGap": "forecast.criteria",
    "GapArea": "forecast.criteria",
    # real training
    "GroupedData": "data.grouped",
    "CrossEntropy": "losses",
    "Probe": "training.probe",
    "train": "training.loop",
    "ensemble": "training.ensemble",
    "lightning_callback": "training.adapters.lightning",
    "hugging_face_callback": "training.adapters.hugging_face",
    "ignite_handler": "training.adapters.ignite",
    "skorch_callback": "training.adapters.skorch",
    "GroupMetric": "measures.group_metric",
    "Sometimes": "measures.sometimes",
    "measure": "measures.direct",
    "report": "report.runs",
    # questions
    "Crossing": "analysis.crossings",
    "crossings": "analysis.crossings",
    "leader": "analysis.grids",
    "crossing_count": "analysis.grids",
    "phases": "analysis.phases",
    "drivers": "analysis.drivers",
    "agreement": "analysis.agreement",
    "stopping": "analysis.stopping",
    # records
    "Trajectory": "record",
    "Origin": "record",
    "Recorder": "record",
    "stack": "record",
    "save": "record",
    "load": "record",
    "check": "record",
    "every": "record",
    "log_spaced": "record",
    "at": "record",
}
_ROOMS = ("cases", "export", "plot")

__all__ = ["__version__", *_HOMES, *_ROOMS]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"tiltmeter.{name}")
    if name not in _HOMES:
        raise AttributeError(f"tiltmeter has no {name!r}.")
    try:
        value = getattr(import_module(f"tiltmeter.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(f"`{name}` needs PyTorch: pip install 'tiltmeter[torch]'", name="torch") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The daily names only: what this file itself imports would be noise after `tm.<TAB>`."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


class _House(ModuleType):
    """A room may be called like a daily name (`report`): importing the room must not hide the name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _House
