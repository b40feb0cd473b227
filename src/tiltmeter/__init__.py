"""tiltmeter: which group a model will favour, when during training, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer
from tiltmeter.version import __version__

if TYPE_CHECKING:
    from tiltmeter import data as data
    from tiltmeter import export as export
    from tiltmeter import fairness as fairness
    from tiltmeter import interventions as interventions
    from tiltmeter import losses as losses
    from tiltmeter import measures as measures
    from tiltmeter import modules as modules
    from tiltmeter import plot as plot
    from tiltmeter import predictions as predictions
    from tiltmeter import record as record
    from tiltmeter import results as results
    from tiltmeter import schedules as schedules
    from tiltmeter import theory as theory
    from tiltmeter import training as training
    from tiltmeter.advice.advise import advise as advise
    from tiltmeter.changes.compare import compare as compare
    from tiltmeter.cli.from_toml import from_toml as from_toml
    from tiltmeter.data.grouped import GroupedData as GroupedData
    from tiltmeter.discover.discover import discover as discover
    from tiltmeter.explorer.live import live as live
    from tiltmeter.fairness.gate import gate as gate
    from tiltmeter.forecast import methods as methods
    from tiltmeter.forecast.forecast import forecast as forecast
    from tiltmeter.forecast.kernel.network_kernels import tangent as tangent
    from tiltmeter.forecast.nowcast import EarlyWarning as EarlyWarning
    from tiltmeter.forecast.nowcast import nowcast as nowcast
    from tiltmeter.leaders.agreement import agreement as agreement
    from tiltmeter.leaders.leaders import leaders as leaders
    from tiltmeter.leaders.scorecard.scorecard import scorecard as scorecard
    from tiltmeter.losses import Logistic as Logistic
    from tiltmeter.losses import Square as Square
    from tiltmeter.preview.preview import preview as preview
    from tiltmeter.question import Question as Question
    from tiltmeter.recipe import Recipe as Recipe
    from tiltmeter.recipe import Watch as Watch
    from tiltmeter.record import Trajectory as Trajectory
    from tiltmeter.record import load as load
    from tiltmeter.record import save as save
    from tiltmeter.record import stack as stack
    from tiltmeter.report.runs import report as report
    from tiltmeter.theory.drivers import drivers as drivers
    from tiltmeter.theory.dynamics.equilibrium import equilibrium as equilibrium
    from tiltmeter.theory.dynamics.predict import predict as predict
    from tiltmeter.theory.dynamics.stability import timescales as timescales
    from tiltmeter.theory.problem.fixed import Fixed as Fixed
    from tiltmeter.theory.problem.full_batch import Flow as Flow
    from tiltmeter.theory.problem.sgd import SGD as SGD
    from tiltmeter.theory.problem.teacher_mixture import teacher_mixture as teacher_mixture
    from tiltmeter.theory.simulation.simulate import simulate as simulate
    from tiltmeter.training.ensemble import ensemble as ensemble
    from tiltmeter.training.loop import train as train
    from tiltmeter.training.probe import Probe as Probe
    from tiltmeter.training.steering import Steering as Steering


__all__ = ["__version__", *offer(__name__)]  # noqa: PLE0604
