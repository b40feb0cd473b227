"""Best pulls by the adjoint."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory.dynamics.optimal_schedule import Control, optimal_schedule
from tiltmeter.theory.dynamics.pull_search import smooth
from tiltmeter.theory.problem.sgd_arrays import parameters

A = tm.teacher_mixture(0.75, 0.0, (0.5, 1.5), 0.7)
B = tm.teacher_mixture(0.7, 4.0, (0.1, 1.0), 0.9, (0.471 * np.sqrt(0.1), 0.188))
C = tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
D = tm.teacher_mixture(0.8, 0.0, (0.5, 1.0), 0.3)
GAP = tm.fairness.criteria.GapArea()


def times(until, count=200):
    return np.concatenate([[0.0], np.geomspace(until / 3000.0, until, count)])


@pytest.mark.parametrize("by", ["weights", "draws"])
@pytest.mark.parametrize("problem", [B, C])
class TestControl:
    def make(self, problem, by):
        sgd = tm.SGD(lr=0.3, batch=2, train_bias=True, weight_decay=0.1)
        return sgd, Control.of(parameters(problem, sgd), sgd, times(30.0, 40), np.array([0.0, 1.0, 5.0]), by)

    def test_its_losses_are_those_of_predict(self, problem, by):
        _, control = self.make(problem, by)
        P = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
        steps = {g: tm.schedules.Steps((0.0, 1.0, 5.0), tuple(P[:, i])) for i, g in enumerate("+-")}
        law = tm.interventions.PullSchedule(steps, by=by)
        steered = tm.SGD(lr=0.3, batch=2, train_bias=True, weight_decay=0.1, interventions=(law,))
        exact = tm.predict(problem, steered, times(30.0, 40))["loss"].values
        np.testing.assert_allclose(control.losses(P)[0], exact, atol=1e-6)

    def test_its_gradient_is_exact(self, problem, by):
        _, control = self.make(problem, by)
        rng = np.random.default_rng(0)
        P, slopes = rng.dirichlet([3.0, 3.0], 3), rng.normal(size=(41, 2))
        found = control.gradient(P, control.losses(P)[1], slopes)
        h = 1e-6
        for i in np.ndindex(P.shape):
            up, down = P.copy(), P.copy()
            up[i] += h
            down[i] -= h
            numeric = ((control.losses(up)[0] - control.losses(down)[0]) * slopes).sum() / (2 * h)
            assert found[i] == pytest.approx(numeric, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(
    "criterion",
    [
        tm.fairness.criteria.GapArea(),
        tm.fairness.criteria.FinalGap(),
        tm.fairness.criteria.WorstGroupArea(),
        tm.fairness.criteria.WorstGroupLoss(),
    ],
    ids=lambda criterion: type(criterion).__name__,
)
def test_rounded_criteria_have_their_gradient_and_become_sharp(criterion):
    import xarray as xr

    rng = np.random.default_rng(1)
    losses, at = rng.random((9, 3)), np.sort(rng.random(9))
    _, slope = smooth(criterion, losses, at, 0.05)
    for i in np.ndindex(losses.shape):
        up, down = losses.copy(), losses.copy()
        up[i] += 1e-6
        down[i] -= 1e-6
        numeric = (smooth(criterion, up, at, 0.05)[0] - smooth(criterion, down, at, 0.05)[0]) / 2e-6
        assert slope[i] == pytest.approx(numeric, abs=1e-7)
    sharp = smooth(criterion, losses, at, 1e-6)[0]
    exact = criterion.of({"loss": xr.DataArray(losses, dims=("time", "group"), coords={"time": at})})
    assert sharp == pytest.approx(float(exact), abs=1e-9)


class TestBest:
    @pytest.mark.parametrize(
        ("problem", "lr", "until", "gap", "place"),
        [
            (A, 0.2, 60.0, 0.62, 0.585),
            (B, 0.5, 40.0, 0.50, 0.615),
            (C, 0.3, 40.0, 0.25, 0.455),
            (D, 0.2, 60.0, 0.39, 0.570),
        ],
    )
    def test_best_fixed_draws(self, problem, lr, until, gap, place):
        found = optimal_schedule(problem, tm.SGD(lr=lr), times(until), GAP, pieces=1)
        assert found.after * until == pytest.approx(gap, abs=0.006)
        assert found.law.pulls["+"](0.0) == pytest.approx(place, abs=0.0025)
        assert not found.levels_down

    def test_a_schedule_beats_fixed_pulls_and_does_in_predict_what_it_says(self):
        at = times(60.0, 150)
        one, many = (optimal_schedule(A, tm.SGD(lr=0.2), at, GAP, pieces=n) for n in (1, 8))
        assert many.after < 0.1 * one.after
        found = tm.predict(A, tm.SGD(lr=0.2, interventions=(many.law,)), at)
        assert float(GAP.of(found)) == pytest.approx(many.after, rel=1e-3)
        assert many.worst_area[1] < one.worst_area[1]
        lines = str(many).splitlines()[1:]  # one for each piece, with the pulls of that time
        assert len(lines) == 8
        for line, start in zip(lines, many.law.pulls["+"].starts, strict=True):
            shown = " ".join(f"{group} {pull(start):.3f}," for group, pull in many.law.pulls.items())[:-1]
            assert line.startswith(f"  from t = {start:.4g} ")
            assert line.endswith(f": {shown}")

    def test_levelling_down_is_found_flagged_and_guarded_against(self):
        at = times(60.0)
        free = optimal_schedule(A, tm.SGD(lr=0.2), at, GAP, pieces=1, by="weights", guard=False)
        assert free.levels_down
        assert free.law.pulls["+"](0.0) == pytest.approx(0.035, abs=0.004)
        assert max(after for _, after in free.losses.values()) == pytest.approx(0.426, abs=0.002)
        assert "levelling down" in str(free)
        held = optimal_schedule(A, tm.SGD(lr=0.2), at, GAP, pieces=1, by="weights")
        assert not held.levels_down
        assert "levelling down" not in str(held)

    def test_nothing_to_gain(self):
        same = tm.teacher_mixture(rho=0.5, variance=(1.0, 1.0), overlap=1.0)
        found = optimal_schedule(same, tm.SGD(lr=0.2), times(20.0, 40), pieces=2)
        assert found.after == pytest.approx(found.before, abs=1e-6)
        assert "No pulls improve" in str(found)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("problem", "lr", "until", "gap", "worst", "last"),
        [(A, 0.2, 60.0, 0.012, 17.17, 0.2735), (B, 0.5, 40.0, 0.07, 11.98, 0.2855)],
    )
    def test_best_schedules(self, problem, lr, until, gap, worst, last):
        found = optimal_schedule(problem, tm.SGD(lr=lr), times(until, 600), GAP, pieces=16)
        assert found.after * until < gap
        assert found.worst_area[1] * until < worst
        assert max(after for _, after in found.losses.values()) < last

    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"pieces": 0}, "`pieces` should be a whole number, at least 1"),
            ({"by": "luck"}, '`by` should be "weights" or "draws"'),
            ({"sgd": tm.SGD(lr=0.2, momentum=0.5)}, "has no solution with momentum"),
            ({"sgd": tm.SGD(lr=0.2, weights={"+": 2.0})}, "has no solution with weights"),
            ({"times": [1.0]}, "at least two times"),
            ({"problem": tm.teacher_mixture(rho=("rho", [0.5, 0.6]))}, "is for one problem. Found a grid over rho"),
        ],
    )
    def test_bad_input(self, more, message):
        given = {"problem": A, "sgd": tm.SGD(lr=0.2), "times": [0.0, 1.0, 2.0], **more}
        with pytest.raises(ValueError, match=message):
            optimal_schedule(**given)

    def test_a_criterion_without_a_gradient(self):
        with pytest.raises(TypeError, match=r"should be WorstGroupArea.*Found equal opportunity"):
            optimal_schedule(A, tm.SGD(lr=0.2), [0.0, 1.0], tm.fairness.criteria.EqualOpportunity())
        with pytest.raises(TypeError, match="the class GapArea: call it"):
            optimal_schedule(A, tm.SGD(lr=0.2), [0.0, 1.0], tm.fairness.criteria.GapArea)
