"""Interventions of groups as values: JSON, bad input, and what all of them have in common."""

import json
from dataclasses import dataclass, fields

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.interventions import INTERVENTIONS
from tiltmeter.interventions.group_intervention import GroupIntervention, Seen, pulls
from tiltmeter.interventions.stored import intervention_from_json, intervention_named

I = tm.interventions
EXAMPLES = {
    "Balanced": I.Balanced(0.5, by="draws"),
    "PullSchedule": I.PullSchedule({"+": tm.schedules.Steps((0.0, 3.0), (0.3, 0.6)), "-": 0.7}, by="draws"),
    "GroupDRO": I.GroupDRO(5.0, 10.0, adjust={"+": 0.1, "-": 0.2}, floor=0.05, begin="shares", memory=20, every=10),
    "DualAscent": I.DualAscent({"+": float("inf"), "-": 0.3}, 2.0),
    "VREx": I.VREx(4.0, positive=True, by="draws"),
    "Tilted": I.Tilted(-1.0),
    "ChiSquareDRO": I.ChiSquareDRO(2.0),
    "GroupCVaR": I.GroupCVaR(0.4, 50.0),
    "NormalisedGradient": I.NormalisedGradient(0.5),
    "UPGrad": I.UPGrad(),
    "GroupClipping": I.GroupClipping(0.5),
    "JacobianDescent": I.JacobianDescent("MGDA"),
}


def seen(shares, losses, gram=None, sizes=None, groups=("+", "-"), time=0.0):
    return Seen(time, groups[: len(shares)], np.asarray(shares, float), np.asarray(losses, float), sizes, gram)


def test_every_law_of_groups_has_an_example_here():
    assert set(EXAMPLES) == {name for name in INTERVENTIONS if issubclass(intervention_named(name), GroupIntervention)}


@pytest.mark.parametrize("law", EXAMPLES.values(), ids=EXAMPLES)
class TestEveryLaw:
    def test_json_both_ways(self, law):
        assert intervention_from_json(json.loads(json.dumps(law.to_json()))) == law
        sgd = tm.SGD(lr=0.1, interventions=(law,))
        assert tm.SGD.from_json(json.loads(json.dumps(sgd.to_json()))) == sgd
        assert hash(sgd) == hash(tm.SGD.from_json(sgd.to_json()))
        assert sgd != tm.SGD(lr=0.1)

    def test_says_what_it_needs_costs_and_cannot(self, law):
        assert law.needs == "training groups"
        assert law.cannot
        assert law.cost(groups=3) == (4.0 if law.sees_gram else 1.0)
        assert law.routes[0] == ("simulate" if law.sees_gram else "predict")

    def test_pulls_every_row_by_itself(self, law):
        shares, losses = np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]), np.array([[0.4, 0.5], [0.5, 0.1], [0.3, 0.3]])
        gram = np.array([[[2.0, -0.5], [-0.5, 1.0]], [[1.0, 0.2], [0.2, 3.0]], [[1.0, 0.0], [0.0, 1.0]]])
        together = pulls(
            law, law.start(shares), seen(shares, losses, gram).__class__(0.0, ("+", "-"), shares, losses, None, gram)
        )
        for i in range(3):
            alone = pulls(law, law.start(shares[i]), seen(shares[i], losses[i], gram[i]))
            np.testing.assert_array_equal(together[i], alone)

    def test_is_frozen(self, law):
        with pytest.raises(AttributeError):
            law.memory = 1.0


class TestBadInput:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: I.GroupDRO(by="luck"), '`by` should be "weights" or "draws". Found by = \'luck\'.'),
            (lambda: I.GroupDRO(memory=-1), "`memory` should be a number of points, at least 0"),
            (lambda: I.GroupDRO(every=0), "`every` should be a whole number of steps, at least 1"),
            (lambda: I.GroupDRO(rate=-1.0), "`rate` should be at least 0. Found rate = -1."),
            (lambda: I.GroupDRO(floor=1.0), r"`floor` should lie in \[0, 1\). Found floor = 1.0."),
            (lambda: I.GroupDRO(begin="now"), '`begin` should be "equal" or "shares"'),
            (lambda: I.DualAscent(0.0), "`bound` should be above 0. Found bound = 0."),
            (lambda: I.DualAscent({"+": -0.1}), r"`bound\['\+'\]` should be above 0"),
            (lambda: I.VREx(by="draws"), "A group cannot be drawn a negative number of times"),
            (lambda: I.VREx(-1.0), "`beta` should be at least 0"),
            (lambda: I.Tilted(np.inf), "`strength` should be a number"),
            (lambda: I.Balanced(np.nan), "`power` should be a number"),
            (lambda: I.ChiSquareDRO(0.0), "`strength` should be above 0"),
            (lambda: I.GroupCVaR(0.0), r"`alpha` should lie in \(0, 1\]"),
            (lambda: I.UPGrad(by="draws"), "UPGrad weighs gradients of a batch that is drawn"),
            (lambda: I.PullSchedule({"+": -1.0}), r"`pulls\['\+'\]` should be a schedule or a number of at least 0"),
        ],
    )
    def test_values(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    @pytest.mark.parametrize("make", [lambda: I.DualAscent("low"), lambda: I.PullSchedule(0.5)])
    def test_types(self, make):
        with pytest.raises(TypeError, match="should"):
            make()

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (I.GroupDRO(), r"write interventions=\(GroupDRO\(...\),\)"),
            ((I.GroupDRO,), "Found the class GroupDRO: call it"),
            (("GroupDRO",), "should hold interventions, as GroupDRO"),
            ("GroupDRO", "should be a tuple of interventions"),
            (3, "should be a tuple of interventions. Found int"),
        ],
    )
    def test_interventions_of_an_sgd(self, given, message):
        with pytest.raises(TypeError, match=message):
            tm.SGD(lr=0.1, interventions=given)

    def test_two_laws_of_groups(self):
        with pytest.raises(ValueError, match=r"at most one GroupIntervention. Found GroupDRO, Tilted"):
            tm.SGD(lr=0.1, interventions=[I.GroupDRO(), I.Tilted()])

    def test_a_group_that_the_law_does_not_name(self):
        problem = tm.teacher_mixture(rho=0.7)
        for law, name in ((I.DualAscent({"+": 0.3}), "bound"), (I.GroupDRO(1.0, adjust={"+": 0.3}), "adjust")):
            with pytest.raises(
                KeyError, match=rf"`{name}` of {type(law).__name__} should name every group; '-' is missing"
            ):
                tm.predict(problem, tm.SGD(lr=0.1, interventions=(law,)), [1.0])
        with pytest.raises(KeyError, match=r"names the unknown group 'x'. There are: '\+', '-'"):
            tm.predict(problem, tm.SGD(lr=0.1, interventions=(I.DualAscent({"x": 0.3, "+": 1, "-": 1}),)), [1.0])

    def test_an_adjustment_needs_sizes(self):
        sgd = tm.SGD(lr=0.1, interventions=(I.GroupDRO(1.0, adjust=2.0),))
        with pytest.raises(ValueError, match="fresh data have no such number: give the adjustment by group"):
            tm.predict(tm.teacher_mixture(rho=0.7), sgd, [1.0])

    def test_a_floor_for_too_many_groups(self):
        with pytest.raises(ValueError, match="`floor` should lie below 1 / 2 for 2 groups"):
            tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, interventions=(I.GroupDRO(1.0, floor=0.5),)), [1.0])

    def test_a_group_that_is_never_drawn_cannot_be_weighed(self):
        sgd = tm.SGD(lr=0.1, proportions={"+": 1.0, "-": 0.0}, interventions=(I.Balanced(),))
        with pytest.raises(ValueError, match="Group '-' is never drawn, so Balanced cannot weigh it"):
            tm.predict(tm.teacher_mixture(), sgd, [1.0])

    def test_names_and_files(self):
        with pytest.raises(KeyError, match=r"There is no intervention 'GrupDRO'. Did you mean GroupDRO"):
            intervention_named("GrupDRO")
        with pytest.raises(KeyError, match="GroupDRO has no field 'speed'"):
            intervention_from_json({"kind": "GroupDRO", "speed": 1})
        with pytest.raises(KeyError, match="should have a key `kind`"):
            intervention_from_json({"rate": 1})

    def test_a_pull_of_another_shape(self):
        @dataclass(frozen=True)
        class Odd(GroupIntervention):
            def pull(self, z, seen):  # noqa: ARG002
                return np.ones(3)

        with pytest.raises(ValueError, match="`pull` of Odd should give one number per group"):
            tm.predict(tm.teacher_mixture(), tm.SGD(lr=0.1, interventions=(Odd(),)), [1.0])


def test_an_own_law_is_stored_by_name_and_not_rebuilt():
    @dataclass(frozen=True)
    class Tilted(GroupIntervention):  # the name of one of ours
        def pull(self, z, seen):  # noqa: ARG002
            return seen.shares

    stored = tm.SGD(lr=0.1, interventions=(Tilted(),)).to_json()
    assert stored["interventions"][0]["kind"].endswith("Tilted")
    assert stored["interventions"][0]["kind"] != "Tilted"
    with pytest.raises(ValueError, match="is not part of tiltmeter and cannot be rebuilt"):
        tm.SGD.from_json(stored)


def test_kinds_are_abstract_and_say_what_they_change():
    for name in (name for name in I.__all__ if name.endswith("Intervention") and name != "Intervention"):
        kind = getattr(I, name)
        with pytest.raises(TypeError, match="abstract"):
            kind()
        assert kind.changes
        assert kind.needs in ("training groups", "validation groups", "no groups")
    assert [field.name for field in fields(I.DataIntervention)] == ["scout"]
