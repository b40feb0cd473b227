"""No public function that takes an SGD may ignore an intervention: it applies it, or refuses it by name."""

import inspect
import typing
from dataclasses import dataclass

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.kinds import ModelIntervention

I = tm.interventions
PROBLEM = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
CLASSES = tm.theory.class_mixture(3, rho=0.8, overlap=0.8)
TIMES = [0.5, 4.0]


@dataclass(frozen=True)
class Delivered(ModelIntervention):
    def deliver(self, model, data):  # noqa: ARG002
        return model


def losses(found):
    return found["loss"].values


#: How each public function is called with an SGD, and a number of it that an intervention must change.
CALLS = {
    "centred_class_losses": lambda sgd: tm.theory.centred_class_losses(CLASSES, sgd, np.array(TIMES))[0],
    "predict": lambda sgd: losses(tm.predict(PROBLEM, sgd, TIMES)),
    "simulate": lambda sgd: losses(tm.simulate(PROBLEM, sgd, TIMES, d=30)),
    "timescales": lambda sgd: tm.timescales(PROBLEM, sgd).Q.values,
    "drivers": lambda sgd: tm.drivers(PROBLEM, sgd, TIMES)["loss_gap"].values,
    "stability_limit": lambda sgd: tm.theory.stability_limit(PROBLEM, sgd).values,
    "initial_rates": lambda sgd: tm.theory.initial_rates(PROBLEM, sgd).loss.values,
    "asymptotes": lambda sgd: tm.theory.asymptotes(PROBLEM, sgd).loss.values,
    "first_leader": lambda sgd: tm.theory.first_leader(PROBLEM, sgd).values,
    "final_leader": lambda sgd: tm.theory.final_leader(PROBLEM, sgd).values,
    "closed_form": lambda sgd: losses(tm.theory.closed_form(PROBLEM, sgd, TIMES)),
    "gram_limit": lambda sgd: losses(tm.theory.gram_limit(PROBLEM, sgd, TIMES)),
    "optimal_schedule": lambda sgd: tm.theory.optimal_schedule(PROBLEM, sgd, TIMES, pieces=1).after,
    "moments": lambda sgd: losses(tm.theory.moments(PROBLEM, sgd, TIMES, d=30)),
    "crossing_bound": lambda sgd: tm.theory.crossing_bound(PROBLEM, sgd).coefficients,
    "to_torch": lambda sgd: sgd.to_torch(10),
}
#: They are for batches of one.
PLAIN = ("closed_form",)
#: They look for the pulls themselves, so that a constant intervention changes nothing in what they find.
FREE = ("optimal_schedule", "first_leader", "final_leader")


def call(name, sgd):
    """What a function finds, or what it says instead."""
    try:
        return CALLS[name](sgd), None
    except ValueError as error:
        return None, str(error)


def takes_an_sgd(value):
    try:
        hints = typing.get_type_hints(value)
    except (NameError, TypeError):
        hints = {}
    named = inspect.signature(value).parameters
    return any(
        "sgd" in name.lower() or tm.SGD in (hints.get(name), *typing.get_args(hints.get(name))) for name in named
    )


def public_functions():
    for room in (tm, tm.theory, tm.theory.plot, tm.plot, tm.export, tm.fairness.criteria, tm.data, tm.measures):
        for name in getattr(room, "__all__", dir(room)):
            value = getattr(room, name)
            if inspect.isfunction(value):
                yield name, value


def test_every_public_function_with_an_sgd_is_called_here():
    assert {name for name, value in public_functions() if takes_an_sgd(value)} <= set(CALLS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "law", [I.GroupDRO(5.0, by="draws"), I.UPGrad(), Delivered()], ids=lambda law: type(law).__name__
)
def test_a_law_is_applied_or_refused_by_name(name, law):
    batch = 1 if name in PLAIN else 8
    found, said = call(name, tm.SGD(lr=0.2, batch=batch, interventions=(law,)))
    if said is not None:
        assert type(law).__name__ in said or (name == "gram_limit" and "intervention of gradients" in said)
        assert any(f"`{other}`" in said for other in ("predict", "simulate", "train", "tiltmeter", "weights"))
    elif name != "gram_limit":
        assert not np.array_equal(found, CALLS[name](tm.SGD(lr=0.2, batch=batch)))


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("gram_limit", *FREE)])
def test_a_constant_law_is_applied_or_refused_by_name(name):
    plain = CALLS[name](tm.SGD(lr=0.2))
    found, said = call(name, tm.SGD(lr=0.2, interventions=(I.Balanced(),)))
    if said is not None:
        assert "Balanced" in said
    else:
        assert not np.array_equal(found, plain)
        if name not in ("predict", "simulate"):
            weights = tm.SGD(lr=0.2, weights={"+": 0.5 / 0.75, "-": 2.0})
            np.testing.assert_allclose(found, CALLS[name](weights))


def test_phases_and_crossings_of_a_law_are_its_own():
    at = np.geomspace(0.02, 20.0, 50)
    plain, steered = (
        tm.predict(PROBLEM, tm.SGD(lr=0.2, interventions=laws), at) for laws in ((), (I.GroupDRO(5.0, by="draws"),))
    )
    assert len(tm.leaders(plain, "loss").changes) != len(tm.leaders(steered, "loss").changes)
    assert len(tm.leaders(plain, "loss").phases) != len(tm.leaders(steered, "loss").phases)


def test_every_law_stands_in_the_table():
    from pathlib import Path

    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "interventions.md").read_text(encoding="utf-8")
    for name in INTERVENTIONS:
        assert name in text, name
