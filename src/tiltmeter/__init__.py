"""tiltmeter: which group a model will favour, when during training, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer
from tiltmeter.version import __version__

if TYPE_CHECKING:
    from tiltmeter import data as data
    from tiltmeter import export as export
    from tiltmeter import interventions as interventions
    from tiltmeter import measures as measures
    from tiltmeter import plot as plot
    from tiltmeter import schedule as schedules  # noqa: F401
    from tiltmeter import simulation as simulation
    from tiltmeter import theory as theory
    from tiltmeter.advice.advise import advise as advise
    from tiltmeter.analysis.agreement import agreement as agreement
    from tiltmeter.analysis.calibration import calibration as calibration
    from tiltmeter.analysis.class_crossings import class_crossings as class_crossings
    from tiltmeter.analysis.crossings import crossings as crossings
    from tiltmeter.analysis.drivers import drivers as drivers
    from tiltmeter.analysis.grids import crossing_count as crossing_count
    from tiltmeter.analysis.grids import leader as leader
    from tiltmeter.analysis.memorisation import memorisation as memorisation
    from tiltmeter.analysis.phases import phases as phases
    from tiltmeter.analysis.scorecard import selection as selections  # noqa: F401
    from tiltmeter.analysis.scorecard.scorecard import scorecard as scorecard
    from tiltmeter.analysis.standing import standing as standing
    from tiltmeter.analysis.stopping import stopping as stopping
    from tiltmeter.analysis.variance.shares import shares as shares
    from tiltmeter.analysis.why import why as why
    from tiltmeter.data.grouped import GroupedData as GroupedData
    from tiltmeter.forecast import route as routes  # noqa: F401
    from tiltmeter.forecast.bands.band_horizon import horizon as horizon
    from tiltmeter.forecast.bands.forecast_band import forecast_band as forecast_band
    from tiltmeter.forecast.best_weights import best_weights as best_weights
    from tiltmeter.forecast.early_warning import EarlyWarning as EarlyWarning
    from tiltmeter.forecast.forecast import forecast as forecast
    from tiltmeter.forecast.kernel.best_schedule import best_schedule as best_schedule
    from tiltmeter.forecast.kernel.loaded_tangent import load_tangent as load_tangent
    from tiltmeter.forecast.kernel.network_kernels import tangent as tangent
    from tiltmeter.forecast.nowcast import nowcast as nowcast
    from tiltmeter.losses import CrossEntropy as CrossEntropy
    from tiltmeter.losses import Hinge as Hinge
    from tiltmeter.losses import Logistic as Logistic
    from tiltmeter.losses import Loss as Loss
    from tiltmeter.losses import Square as Square
    from tiltmeter.measures.group_metric import GroupMetric as GroupMetric
    from tiltmeter.measures.measure import measure as measure
    from tiltmeter.measures.sometimes import Sometimes as Sometimes
    from tiltmeter.population import criteria as criteria
    from tiltmeter.problem import cases as cases
    from tiltmeter.problem import optimisers as optimisers
    from tiltmeter.problem import start as starts  # noqa: F401
    from tiltmeter.problem import student as students  # noqa: F401
    from tiltmeter.problem.class_mixture import ClassMixture as ClassMixture
    from tiltmeter.problem.class_mixture_of_two import class_mixture as class_mixture
    from tiltmeter.problem.fixed import Fixed as Fixed
    from tiltmeter.problem.full_batch import Descent as Descent
    from tiltmeter.problem.full_batch import Flow as Flow
    from tiltmeter.problem.mixture import Mixture as Mixture
    from tiltmeter.problem.sgd import SGD as SGD
    from tiltmeter.problem.teacher_mixture import teacher_mixture as teacher_mixture
    from tiltmeter.recipe import BatchOrder as BatchOrder
    from tiltmeter.recipe import Recipe as Recipe
    from tiltmeter.recipe import Watch as Watch
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
    from tiltmeter.report.card_file import to_model_card as to_model_card
    from tiltmeter.report.runs import report as report
    from tiltmeter.simulation.simulate import simulate as simulate
    from tiltmeter.study import Study as Study
    from tiltmeter.theory.equilibrium import equilibrium as equilibrium
    from tiltmeter.theory.equilibrium_weights import equilibrium_weights as equilibrium_weights
    from tiltmeter.theory.predict import predict as predict
    from tiltmeter.theory.stability import timescales as timescales
    from tiltmeter.training import adapters as adapters
    from tiltmeter.training.ensemble import ensemble as ensemble
    from tiltmeter.training.loop import train as train
    from tiltmeter.training.probe import Probe as Probe
    from tiltmeter.training.steering import Steering as Steering

#: Where each daily name lives.
_HOMES = {
    # the problem and how it is trained
    "Mixture": "problem.mixture",
    "teacher_mixture": "problem.teacher_mixture",
    "ClassMixture": "problem.class_mixture",
    "class_mixture": "problem.class_mixture_of_two",
    "SGD": "problem.sgd",
    "Flow": "problem.full_batch",
    "Descent": "problem.full_batch",
    "Fixed": "problem.fixed",
    # exact theory
    "predict": "theory.predict",
    "timescales": "theory.stability",
    "equilibrium": "theory.equilibrium",
    "equilibrium_weights": "theory.equilibrium_weights",
    # simulation at finite d
    "simulate": "simulation.simulate",
    # losses
    "Loss": "losses",
    "Square": "losses",
    "Logistic": "losses",
    "Hinge": "losses",
    "CrossEntropy": "losses",
    # before training
    "forecast": "forecast.forecast",
    "tangent": "forecast.kernel.network_kernels",
    "load_tangent": "forecast.kernel.loaded_tangent",
    "forecast_band": "forecast.bands.forecast_band",
    "horizon": "forecast.bands.band_horizon",
    "nowcast": "forecast.nowcast",
    "EarlyWarning": "forecast.early_warning",
    "best_weights": "forecast.best_weights",
    "best_schedule": "forecast.kernel.best_schedule",
    "advise": "advice.advise",
    # real training
    "GroupedData": "data.grouped",
    "Recipe": "recipe",
    "BatchOrder": "recipe",
    "Watch": "recipe",
    "Probe": "training.probe",
    "train": "training.loop",
    "ensemble": "training.ensemble",
    "Steering": "training.steering",
    "GroupMetric": "measures.group_metric",
    "Sometimes": "measures.sometimes",
    "measure": "measures.measure",
    # questions
    "crossings": "analysis.crossings",
    "class_crossings": "analysis.class_crossings",
    "leader": "analysis.grids",
    "crossing_count": "analysis.grids",
    "phases": "analysis.phases",
    "memorisation": "analysis.memorisation",
    "drivers": "analysis.drivers",
    "agreement": "analysis.agreement",
    "standing": "analysis.standing",
    "scorecard": "analysis.scorecard.scorecard",
    "stopping": "analysis.stopping",
    "shares": "analysis.variance.shares",
    "calibration": "analysis.calibration",
    "why": "analysis.why",
    "report": "report.runs",
    "to_model_card": "report.card_file",
    # many runs
    "Study": "study",
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
#: Rooms with names of their own: `tm.students.Network`, `tm.schedules.Cosine`.
_ROOMS = {
    "adapters": "training.adapters",
    "cases": "problem.cases",
    "criteria": "population.criteria",
    "data": "data",
    "export": "export",
    "interventions": "interventions",
    "measures": "measures",
    "optimisers": "problem.optimisers",
    "plot": "plot",
    "routes": "forecast.route",
    "schedules": "schedule",
    "selections": "analysis.scorecard.selection",
    "simulation": "simulation",
    "starts": "problem.start",
    "students": "problem.student",
    "theory": "theory",
}

__all__ = ["__version__", *offer(__name__, _HOMES, _ROOMS)]  # noqa: PLE0604
