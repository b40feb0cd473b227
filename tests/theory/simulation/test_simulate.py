"""The front door of simulation: shapes, names, seeds, times, divergence, and every refusal."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import tracemalloc

import numpy as np
import pytest
import xarray as xr

from tiltmeter import SGD, agreement, predict, simulate, teacher_mixture
from tiltmeter.record.trajectory import Trajectory
from tiltmeter.schedules import PowerDecay
from tiltmeter.theory import Mixture
from tiltmeter.theory.problem.fixed import Fixed
from tiltmeter.theory.problem.optimisers import Adam, SignSGD
from tiltmeter.theory.problem.starts import Random
from tiltmeter.theory.problem.students import Network, ReLU
from tiltmeter.theory.simulation.chain import Chain
from tiltmeter.theory.simulation.direct_method import Direct

PROBLEM = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
PLAIN = SGD(lr=0.3)


class TestCurves:
    @pytest.mark.parametrize("method", [Chain(), Direct()])
    def test_the_curves_of_predict_with_a_dimension_seed(self, method):
        theory = predict(PROBLEM, SGD(lr=0.3, train_bias=True), [1.0, 2.0])
        runs = simulate(PROBLEM, SGD(lr=0.3, train_bias=True), [1.0, 2.0], d=50, seeds=3, method=method)
        assert list(runs) == list(theory)
        for name, curve in theory.items():
            assert runs[name].dims == (*curve.dims, "seed")
            assert runs[name].attrs == curve.attrs
        assert runs.clock == "t"
        assert runs.origin.source == "simulation"
        assert runs.origin.seeds == (0, 1, 2)
        assert runs.origin.settings["d"] == 50
        assert Mixture.from_json(runs.origin.problem) == PROBLEM
        assert SGD.from_json(runs.origin.settings["sgd"]) == SGD(lr=0.3, train_bias=True)

    def test_a_network_has_units(self):
        runs = simulate(PROBLEM, SGD(lr=0.3, start=Random()), [1.0], d=50, seeds=2, student=Network(3))
        assert runs["M"].dims == ("time", "group", "unit", "seed")
        assert runs["Q"].dims == ("time", "unit", "other", "seed")
        assert runs["second_layer"].shape == (1, 3, 2)
        assert runs["error"].dims == ("time", "group", "seed")

    def test_only_the_curves_asked_for(self):
        assert list(simulate(PROBLEM, PLAIN, [1.0], d=50, curves=("loss", "Q"))) == ["loss", "Q"]

    def test_a_large_dimension_is_the_theory(self):
        times = [0.5, 1.0, 3.0]
        runs = simulate(PROBLEM, PLAIN, times, d=100_000, seeds=8)
        assert agreement(predict(PROBLEM, PLAIN, times), runs)["loss"].largest < 0.003

    def test_time_zero_is_the_start(self):
        runs = simulate(PROBLEM, SGD(lr=0.3, start=Random(2.0)), [0.0, 1.0], d=10_000, seeds=2)
        assert runs["Q"].isel(time=0).values == pytest.approx([4.0, 4.0], abs=0.3)

    def test_a_run_can_be_rebuilt_from_json(self):
        runs = simulate(PROBLEM, PLAIN, [1.0], d=50, seeds=2, curves=("loss",))
        assert Trajectory.from_json(runs.to_json()) == runs


class TestSeeds:
    @pytest.mark.parametrize("method", [Chain, Direct])
    @pytest.mark.parametrize("student", [{}, {"student": Network(2, ReLU())}])
    def test_a_seed_is_the_same_whatever_the_threads_and_the_other_seeds(self, method, student):
        sgd = SGD(lr=0.3, start=Random(), batch=2)
        chosen = {"d": 60, "curves": ("M", "R", "Q"), **student}
        many = simulate(PROBLEM, sgd, [0.5, 40.0], seeds=24, method=method(threads=2), **chosen)
        assert many == simulate(PROBLEM, sgd, [0.5, 40.0], seeds=24, method=method(threads=1), **chosen)
        few = simulate(PROBLEM, sgd, [0.5, 40.0], seeds=[17, 3], method=method(), **chosen)
        for name in many:
            xr.testing.assert_identical(few[name], many[name].sel(seed=[17, 3]))

    def test_looking_more_often_changes_nothing(self):
        once = simulate(PROBLEM, SGD(lr=PowerDecay(0.4, 2.0)), [5.0], d=100, seeds=4)
        often = simulate(PROBLEM, SGD(lr=PowerDecay(0.4, 2.0)), np.arange(1, 501) / 100, d=100, seeds=4)
        xr.testing.assert_identical(once["loss"], often["loss"].isel(time=[-1]))

    def test_chain_and_direct_runs_of_a_seed_are_independent(self):
        chosen = {"d": 30, "seeds": 400, "curves": ("Q",)}
        one = simulate(PROBLEM, SGD(lr=0.5, start=Random()), [0.1], **chosen)["Q"].values.ravel()
        two = simulate(PROBLEM, SGD(lr=0.5, start=Random()), [0.1], method=Direct(), **chosen)["Q"].values.ravel()
        assert abs(np.corrcoef(one, two)[0, 1]) < 4 / np.sqrt(400)


class TestTimes:
    def test_times_are_those_of_whole_steps(self):
        runs = simulate(PROBLEM, PLAIN, [0.26, 1.01], d=10)
        assert runs["loss"].time.values.tolist() == [0.3, 1.0]

    def test_times_that_coincide_are_merged_with_a_note(self):
        with pytest.warns(UserWarning, match=r"4 times give 2 different numbers of steps at d = 10"):
            runs = simulate(PROBLEM, PLAIN, [0.1, 0.101, 0.2, 0.21], d=10)
        assert runs["loss"].time.values.tolist() == [0.1, 0.2]

    def test_times_that_fit_give_no_note(self, recwarn):
        simulate(PROBLEM, PLAIN, [0.1, 0.2], d=10)
        assert not recwarn


class TestDivergence:
    @pytest.mark.parametrize("method", [Chain(), Direct()])
    @pytest.mark.parametrize("student", [{}, {"student": Network(2, ReLU())}])
    def test_it_is_reported_with_seed_and_time_and_others_go_on(self, method, student):
        # At the edge of stability some runs of a small system are lost and others are not.
        problem, sgd = teacher_mixture(0.5, 0.0, (0.3, 3.0), 0.5), SGD(lr=0.7, start=Random())
        times = np.arange(1, 31) * 5.0
        if student:
            sgd = SGD(lr=1.5, start=Random())
        with pytest.warns(UserWarning, match=r"of 40 seeds diverged, the first seed \d+ at t = "):
            runs = simulate(problem, sgd, times, d=10, seeds=40, method=method, curves=("loss", "Q"), **student)
        lost = np.isfinite(runs.diverged.values)
        assert 0 < lost.sum() < 40
        assert runs.diverged.dims == ("seed",)
        for seed in np.flatnonzero(lost):
            known = runs["Q"].sel(seed=seed).notnull().all([d for d in runs["Q"].dims if d not in ("time", "seed")])
            np.testing.assert_array_equal(known.values, times < runs.diverged.values[seed])
        assert runs["loss"].isel(seed=np.flatnonzero(~lost)).notnull().all()

    def test_all_may_be_lost(self):
        with pytest.warns(UserWarning, match="3 of 3 seeds diverged"):
            runs = simulate(PROBLEM, SGD(lr=50.0), [1.0, 2.0], d=50, seeds=3)
        assert runs["loss"].isnull().all()
        assert np.isfinite(runs.diverged).all()


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"d": 4}, ValueError, r"`d` should be at least 5: means and teachers span 3 dimensions, and one vector"),
            ({"d": 6, "student": Network(2)}, ValueError, r"`d` should be at least 6|2 vectors move"),
            ({"d": 10.0}, TypeError, r"`d` should be an integer. Found d = 10\.0"),
            ({"d": True}, TypeError, r"`d` should be an integer. Found d = True"),
            ({"d": 0}, ValueError, r"`d` should be at least 1. Found d = 0"),
            (
                {"seeds": 2.5},
                TypeError,
                r"`seeds` should be how many, or a list of different whole numbers from 0. Found seeds = 2\.5",
            ),
            ({"seeds": [0, 1.5]}, TypeError, r"`seeds` should be how many"),
            ({"seeds": "three"}, TypeError, r"`seeds` should be how many"),
            ({"seeds": 0}, ValueError, r"`seeds` should lie between 1 and 100,000,000. Found seeds = 0"),
            ({"seeds": [1, 1]}, ValueError, r"`seeds` should be how many"),
            ({"seeds": [-1]}, ValueError, r"`seeds` should be how many"),
            ({"times": [2.0, 1.0]}, ValueError, r"`times` should increase strictly"),
            ({"sgd": Adam(lr=0.1)}, ValueError, r"Adam treats coordinates separately.*Use method=Direct\(\)"),
            ({"sgd": SignSGD(lr=0.1)}, ValueError, r"SignSGD treats coordinates .* Use method=Direct\(\)"),
            ({"data": Fixed(2.0)}, ValueError, r"With repeated data .* Use method=Direct\(\)"),
            ({"data": 2.0}, TypeError, r"`data` should be Fixed\(samples\), or None.*Found 2\.0"),
            ({"sgd": 0.1}, TypeError, r"`sgd` should be an SGD\(lr=...\), Adam, AdamW or SignSGD. Found float"),
            ({"student": "linear"}, TypeError, r"`student` should be Linear\(\), Softmax\(\) or Network\(units, ...\)"),
            ({"curves": ("los",)}, KeyError, r"There is no curve 'los'"),
            (
                {"method": Direct(), "d": 2},
                ValueError,
                r"`d` should be at least 3: means and teachers span 3 dimensions",
            ),
            ({"sgd": SGD(lr=("lr", [0.1, 0.2]))}, ValueError, r"`simulate` is for one problem; .* grid over lr"),
            ({"sgd": SGD(lr=0.1, weights={"a": 1.0})}, KeyError, r"`weights` names the unknown group 'a'"),
            ({"sgd": SGD(lr=0.1, weights={("+", 2): 1.0})}, KeyError, r"`weights` names the label 2 of group '\+'"),
            ({"sgd": SGD(lr=lambda t: -t)}, ValueError, r"The schedule of `lr` should give non-negative numbers"),
        ],
    )
    def test_every_bad_input_has_its_sentence(self, changes, error, message):
        given = {"problem": PROBLEM, "sgd": PLAIN, "times": [1.0], "d": 50, "seeds": 2, **changes}
        if given["d"] == 6:
            given["d"] = 5
        with pytest.raises(error, match=message):
            simulate(**given)

    def test_the_smallest_dimension_that_does_works(self):
        assert simulate(PROBLEM, PLAIN, [1.0], d=5)["loss"].notnull().all()

    def test_a_grid_of_problems_is_refused(self):
        with pytest.raises(ValueError, match=r"`simulate` is for one problem; this one has a grid over rho"):
            simulate(teacher_mixture(rho=("rho", [0.2, 0.8])), PLAIN, [1.0], d=50)

    def test_an_activation_of_ones_own_is_for_predict(self):
        class Cube:
            def __call__(self, field):
                return field**3

            def slope(self, field):
                return 3 * field**2

        for method in (Chain(), Direct()):
            with pytest.raises(TypeError, match=r"`simulate` knows the activations Identity\(\), Erf\(\)"):
                simulate(PROBLEM, SGD(lr=0.1, start=Random()), [1.0], 50, student=Network(2, Cube()), method=method)


class TestMemory:
    @staticmethod
    def peak(**given):
        simulate(PROBLEM, curves=("Q",), **{**given, "times": [0.001]})
        tracemalloc.start()
        simulate(PROBLEM, curves=("Q",), **given)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def test_it_does_not_grow_with_the_dimension_nor_with_the_steps(self):
        small = self.peak(sgd=PLAIN, times=[1.0], d=1000, seeds=4)
        assert self.peak(sgd=PLAIN, times=[0.001], d=1_000_000, seeds=4) < small + 20_000
        assert self.peak(sgd=PLAIN, times=[200.0], d=1000, seeds=4) < small + 20_000

    def test_schedules_take_no_more(self):
        sgd = SGD(lr=PowerDecay(0.3, 1.0))
        assert self.peak(sgd=sgd, times=[150.0], d=1000, seeds=1) < 8_000_000


class TestRunDirectory:
    def test_what_is_kept_is_what_is_returned(self, tmp_path):
        from tiltmeter import load

        runs = simulate(PROBLEM, SGD(lr=0.3, train_bias=True), [0.1, 1.0, 2.0], d=50, seeds=3, to=tmp_path / "run")
        assert load(tmp_path / "run") == runs

    def test_divergence_is_kept_too(self, tmp_path):
        from tiltmeter import load

        with pytest.warns(UserWarning, match="3 of 3 seeds diverged"):
            runs = simulate(PROBLEM, SGD(lr=50.0), [0.02, 2.0], d=50, seeds=3, to=tmp_path / "run")
        assert load(tmp_path / "run") == runs

    def test_an_existing_run_is_not_overwritten(self, tmp_path):
        simulate(PROBLEM, PLAIN, [0.1], d=50, to=tmp_path / "run")
        with pytest.raises(FileExistsError):
            simulate(PROBLEM, PLAIN, [0.1], d=50, to=tmp_path / "run")

    @pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
    def test_an_interrupt_keeps_what_is_done(self, tmp_path):
        from tiltmeter import load

        # Started in the background of a script, the suite and its children ignore interrupts: ask for them.
        code = textwrap.dedent("""
            import signal
            import numpy as np
            from tiltmeter import SGD, simulate, teacher_mixture
            signal.signal(signal.SIGINT, signal.default_int_handler)
            problem = teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6)
            simulate(problem, SGD(lr=0.1), np.arange(1, 10**6), d=200, seeds=2, curves=("loss",), to="run")
        """)
        child = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        try:
            lines = tmp_path / "run" / "curves.jsonl"
            for _ in range(600):
                if lines.exists() and lines.read_bytes().count(b"\n") > 3:
                    break
                try:
                    child.wait(0.2)
                except subprocess.TimeoutExpired:
                    continue
                break
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
        assert "KeyboardInterrupt" in said
        kept = load(tmp_path / "run")
        assert kept["loss"].sizes["time"] >= 3
        assert kept["loss"].notnull().all()


@pytest.mark.skipif(os.name == "nt", reason="sends a POSIX signal")
class TestInterrupts:
    @pytest.fixture(autouse=True)
    def usual_handler(self):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    def test_one_during_a_stretch_is_noticed_after_it(self, monkeypatch):
        from tiltmeter.theory.simulation.linear_chain import LinearChain

        advance, finished = LinearChain.advance, []

        def interrupted(*given):
            os.kill(os.getpid(), signal.SIGINT)
            advance(*given)
            finished.append(given[2])

        monkeypatch.setattr(LinearChain, "advance", interrupted)
        with pytest.raises(KeyboardInterrupt):
            simulate(PROBLEM, PLAIN, [1.0, 2.0], d=50)
        assert finished == [50]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_a_program_that_ignores_them_is_left_alone(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        simulate(PROBLEM, PLAIN, [1.0], d=50)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    @pytest.mark.slow
    def test_none_of_three_hundred_is_lost(self, tmp_path):
        """numba, reading its arguments, lost one in about a hundred."""
        rng = np.random.default_rng(0)
        for number, delay in enumerate(rng.uniform(0.02, 0.2, 300)):
            timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                simulate(PROBLEM, PLAIN, np.arange(1, 10**5), d=200, seeds=2, to=tmp_path / str(number))
