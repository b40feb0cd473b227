"""Pulls that remove the first gap or the last: theorems, three groups, and refusals."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter_lab.theory.group_pulls import equalising_pulls, first_gap

A = tm.teacher_mixture(0.75, 0.0, (0.5, 1.5), 0.7)


@pytest.mark.parametrize("function", [first_gap, equalising_pulls])
def test_interventions_are_refused_by_name(function):
    law = tm.interventions.GroupDRO(5.0, by="draws")
    with pytest.raises(ValueError, match=f"`{function.__name__}` looks for the pulls itself, without GroupDRO"):
        function(A, tm.SGD(lr=0.2, interventions=(law,)))


class TestFirstGap:
    @pytest.mark.parametrize("variance", [(0.5, 1.5), (1.0, 0.3), (0.9, 1.0)])
    def test_the_theorem(self, variance):
        edge = np.sqrt(min(variance) / max(variance))
        for overlap in (edge - 1e-4, edge + 1e-4, -0.5, 0.999):
            for rho in (0.2, 0.8):
                found = first_gap(tm.teacher_mixture(rho, 0.0, variance, overlap), tm.SGD(lr=0.1))
                assert found.removable == (overlap < edge)

    def test_its_pulls_do_it(self):
        problem = tm.teacher_mixture(0.8, 1.0, (0.5, 1.0), 0.3, (0.2, 0.1))
        found = first_gap(problem, tm.SGD(lr=0.3), small_steps=False)
        assert found.removable
        rates = tm.theory.initial_rates(problem, tm.SGD(lr=0.3, proportions=found.pulls)).loss.values
        assert rates[0] == pytest.approx(rates[1], abs=1e-10)
        assert rates[0] == pytest.approx(0.3 * found.speed)

    def test_where_it_says_no_no_share_does_it(self):
        problem = tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), 0.7)
        assert not first_gap(problem, tm.SGD(lr=1e-6)).removable
        signs = set()
        for P in np.linspace(0.001, 0.999, 50):
            rates = tm.theory.initial_rates(problem, tm.SGD(lr=1e-6, proportions={"+": P, "-": 1 - P})).loss.values
            signs.add(np.sign(rates[0] - rates[1]))
        assert signs == {1.0}

    def test_a_gap_before_the_first_step(self):
        start = tm.theory.starts.Overlaps(M={}, R={"+": 0.2, "-": 0.14}, Q=0.5)
        found = first_gap(tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), 0.7), tm.SGD(lr=0.1, start=start))
        assert not found.removable
        assert "before the first step" in str(found)

    def test_three_groups(self):
        weight = {"a": 0.6, "b": 0.3, "c": 0.1}
        teachers = {"a": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 0.0], "c": [0.0, 0.0, 1.0]}
        problem = tm.theory.Mixture.from_vectors(
            weight=weight,
            variance={"a": 0.5, "b": 1.0, "c": 2.0},
            means=dict.fromkeys(weight, [0.0] * 3),
            teachers=teachers,
        )
        found = first_gap(problem, tm.SGD(lr=0.1))
        # Orthogonal teachers: each group learns from itself alone, at a speed P_g D_g.
        expected = np.array([2.0, 1.0, 0.5]) / 3.5
        np.testing.assert_allclose(list(found.pulls.values()), expected, atol=1e-9)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="is for one problem"):
            first_gap(tm.teacher_mixture(rho=("rho", [0.5, 0.6])), tm.SGD(lr=0.1))


class TestEqualisingPulls:
    @pytest.mark.parametrize("rho", [0.3, 0.9])
    @pytest.mark.parametrize("overlap", [-0.3, 0.7])
    @pytest.mark.parametrize("by", ["weights", "draws"])
    def test_the_theorem(self, rho, overlap, by):
        variance = np.array([0.5, 1.5])
        problem = tm.teacher_mixture(rho, 0.0, tuple(variance), overlap)
        (found,) = equalising_pulls(problem, tm.SGD(lr=1e-7), by)
        expected = variance**-0.5 / (variance**-0.5).sum()
        np.testing.assert_allclose(list(found.values()), expected, atol=1e-5)

    def test_a_finite_rate_moves_it_and_it_still_holds(self):
        (found,) = equalising_pulls(A, tm.SGD(lr=0.2))
        end = tm.theory.asymptotes(A, tm.SGD(lr=0.2, proportions=found)).loss.values
        assert end[0] == pytest.approx(end[1], abs=1e-9)
        assert found["+"] == pytest.approx(0.5825, abs=0.001)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="leave out schedules and weights"):
            equalising_pulls(A, tm.SGD(lr=0.1, weights={"+": 2.0}))
        with pytest.raises(ValueError, match="is for one problem"):
            equalising_pulls(tm.teacher_mixture(rho=("rho", [0.5, 0.6])), tm.SGD(lr=0.1))
