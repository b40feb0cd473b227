"""simulate under interventions of groups: against the equations of motion, seed by seed, in every kind of run."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.theory import Chain, Direct
from tiltmeter.theory.simulation import linear_chain as steered_run

I = tm.interventions
A = tm.teacher_mixture(rho=0.75, variance=(0.5, 1.5), overlap=0.7)
C = tm.teacher_mixture(0.7, 1.5, (0.5, 1.2), 0.6, (0.5, -0.3), (0.2, -0.4))
EVEN = {"+": 0.5, "-": 0.5}


def steered(law, lr=0.2, **more):
    return tm.SGD(lr=lr, interventions=(law,), **more)


class TestSeeds:
    INTERVENTIONS = (
        I.GroupDRO(5.0, by="draws", every=7),
        I.GroupDRO(5.0, 20.0, every=3),
        I.Tilted(2.0),
        I.VREx(2.0, positive=True),
        I.ChiSquareDRO(5.0),
        I.DualAscent(0.31, 1.0),
        I.NormalisedGradient(),
        I.UPGrad(),
    )

    @pytest.mark.filterwarnings(
        "ignore:The pulls of this GroupDRO are mostly noise"
    )  # whose numbers are compared all the same
    @pytest.mark.parametrize("law", INTERVENTIONS, ids=lambda law: type(law).__name__)
    def test_seed_7_is_always_seed_7(self, law):
        sgd = steered(law, lr=0.05, batch=4)
        whole = tm.simulate(C, sgd, [0.3, 0.5, 1.1], d=60, seeds=9, curves=("Q", "pull"))
        alone = tm.simulate(C, sgd, [1.1], d=60, seeds=[7], curves=("Q", "pull"), method=tm.theory.Chain(threads=1))
        for name in ("Q", "pull"):
            np.testing.assert_array_equal(
                whole[name].sel(seed=7, time=1.1, method="nearest").values, alone[name].isel(seed=0, time=0).values
            )

    def test_dro_of_rate_zero_is_balancing_bit_by_bit(self):
        for method in (Chain(), Direct()):
            runs = [
                tm.simulate(C, steered(law), [1.0], d=50, seeds=3, method=method)["loss"].values
                for law in (I.GroupDRO(0.0, every=5), I.Balanced())
            ]
            np.testing.assert_array_equal(*runs)

    def test_shares_as_pulls_change_nothing_bit_by_bit(self):
        shares = I.PullSchedule(dict(zip("+-", C.weight.values.tolist(), strict=True)), every=4)
        for method in (Chain(), Direct()):
            plain = tm.simulate(C, tm.SGD(lr=0.2), [1.0], d=50, seeds=3, method=method)["loss"].values
            same = tm.simulate(C, steered(shares), [1.0], d=50, seeds=3, method=method)["loss"].values
            np.testing.assert_array_equal(plain, same)

    def test_networks_momentum_and_clip_are_steered_too(self):
        law = I.GroupDRO(5.0, by="draws", every=5)
        sgd = steered(law, momentum=0.5, clip=1.0, start=tm.theory.starts.Random(0.5))
        runs = tm.simulate(C, sgd, [2.0], d=50, seeds=2, student=tm.theory.students.Network(2))
        plain = tm.simulate(C, tm.SGD(lr=0.2, momentum=0.5, clip=1.0, start=tm.theory.starts.Random(0.5)), [2.0], d=50, seeds=2,
                            student=tm.theory.students.Network(2))  # fmt: skip
        assert (runs["loss"] != plain["loss"]).all()
        assert runs["pull"].dims == ("time", "group", "seed")

    def test_a_finite_data_set_knows_its_sizes(self):
        law = I.GroupDRO(1.0, adjust=3.0, every=5)
        runs = tm.simulate(C, steered(law), [4.0], d=30, seeds=2, method=Direct(), data=tm.Fixed(2.0))
        assert np.isfinite(runs["loss"]).all()
        # The rarer group has the larger adjustment, so it ends with the larger pull.
        plain = tm.simulate(
            C, steered(I.GroupDRO(1.0, every=5)), [4.0], d=30, seeds=2, method=Direct(), data=tm.Fixed(2.0)
        )
        assert (runs["pull"].sel(group="-") > plain["pull"].sel(group="-")).all()


def test_a_block_in_one_call_is_the_same_in_three(monkeypatch):
    laws = (I.GroupDRO(5.0, by="draws", every=3), I.DualAscent(0.31, memory=5.0, every=2))
    one = [tm.simulate(A, steered(law), [0.5, 1.03], d=40, seeds=3, curves=("loss", "pull")) for law in laws]
    monkeypatch.setattr(steered_run, "LinearChain", ())  # no run is one
    three = [tm.simulate(A, steered(law), [0.5, 1.03], d=40, seeds=3, curves=("loss", "pull")) for law in laws]
    for a, b in zip(one, three, strict=True):
        for name in ("loss", "pull"):
            np.testing.assert_array_equal(a[name].values, b[name].values)


class TestRefusals:
    @pytest.mark.parametrize(
        ("more", "message"),
        [
            ({"method": Direct()}, "`Direct` does not see the gradients that UPGrad needs"),
            (
                {"student": tm.theory.students.Network(2)},
                "UPGrad is simulated for linear students without momentum and clip",
            ),
            ({"d": 4}, "`d` should be at least 5 for gradients of 2 groups"),
        ],
    )
    def test_laws_of_gradients(self, more, message):
        given = {"d": 50, **more}
        with pytest.raises(ValueError, match=message):
            tm.simulate(A, steered(I.UPGrad(), batch=8), [1.0], **given)

    def test_nothing_to_draw_from_a_data_set_gone_through_in_turn(self):
        with pytest.raises(ValueError, match="leaves GroupDRO nothing to draw"):
            tm.simulate(A, steered(I.GroupDRO(by="draws")), [1.0], d=50, method=Direct(), data=tm.Fixed(2.0))

    def test_a_law_that_does_not_fit_the_groups_says_so_before_anything_runs(self):
        with pytest.raises(KeyError, match="should name every group; '-' is missing"):
            tm.simulate(A, steered(I.PullSchedule({"+": 1.0})), [1.0], d=50)

    def test_a_seed_that_diverges_leaves_the_others(self):
        with pytest.warns(UserWarning, match="seeds diverged"):
            runs = tm.simulate(A, steered(I.VREx(10.0, memory=2.0)), [0.5, 20.0], d=100, seeds=24)
        gone = np.isfinite(runs.diverged.values)
        assert gone.sum() > 0
        assert np.isnan(runs["pull"].isel(time=-1).values[:, gone]).all()
        assert np.isfinite(runs["loss"].isel(time=-1).values[:, ~gone]).all()


def standard(runs, theory, name="loss"):
    values = runs[name]
    error = values.std("seed", ddof=1) / np.sqrt(values.sizes["seed"])
    return abs(values.mean("seed") - theory[name]) / error


TIMES = np.linspace(2.0, 20.0, 7)
ROUTES = {
    "balanced by weights": (A, I.Balanced(), 0.2),
    "balanced by draws": (A, I.Balanced(by="draws"), 0.2),
    "a schedule": (A, I.PullSchedule({"+": tm.schedules.Steps((0.0, 5.0), (0.9, 0.5)), "-": 0.3}, by="draws"), 0.2),
    "group DRO by draws": (A, I.GroupDRO(5.0, by="draws", memory=20, every=5), 0.2),
    "group DRO by weights": (C, I.GroupDRO(2.0, memory=20, every=5), 0.3),
    "group DRO, proportional": (A, I.GroupDRO(2.0, 4.0, by="draws", memory=40, every=5), 0.2),
    "dual ascent": (A, I.DualAscent(0.31, 1.0, memory=20, every=5), 0.2),
    "V-REx": (A, I.VREx(2.0, memory=60, every=5), 0.2),
    "tilted": (A, I.Tilted(3.0, memory=40, every=5), 0.2),
    "chi-square": (A, I.ChiSquareDRO(3.0, by="draws", memory=40, every=5), 0.2),
    "CVaR": (A, I.GroupCVaR(0.7, 5.0, by="draws", memory=40, every=5), 0.2),
}


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "law", "lr"), ROUTES.values(), ids=ROUTES)
def test_the_chain_follows_the_equations_of_motion(problem, law, lr):
    """d = 1000 and 48 seeds: within 4 standard errors at every evaluation, for every group."""
    sgd = steered(law, lr=lr)
    runs = tm.simulate(problem, sgd, TIMES, d=1000, seeds=range(100, 148), curves=("loss", "pull"))
    theory = tm.predict(problem, sgd, TIMES, curves=("loss", "pull"))
    assert float(standard(runs, theory).max()) < 4.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The pulls of this GroupDRO are mostly noise")  # they are, in both methods alike
def test_the_direct_run_is_the_chain():
    sgd = steered(I.GroupDRO(5.0, 10.0, by="draws", memory=20, every=5))
    at = [2.0, 5.0, 10.0]
    chain, direct = (
        tm.simulate(C, sgd, at, d=100, seeds=200, method=method, curves=("loss", "pull"))
        for method in (Chain(), Direct())
    )
    for name in ("loss", "pull"):
        one, two = chain[name], direct[name]
        error = np.sqrt((one.var("seed", ddof=1) + two.var("seed", ddof=1)) / 200)
        assert float((abs(one.mean("seed") - two.mean("seed")) / error).max()) < 4.0


def plain_gradients(problem, law, lr, batch, d, t, seeds, shares):
    """Every coordinate of every point in plain NumPy: the other route for interventions that see gradients."""
    from tiltmeter.interventions.group_intervention import Seen
    from tiltmeter.theory.problem.geometry import factor

    place = factor(problem.gram.values)
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng((5, seed))
        frame = np.linalg.qr(rng.normal(size=(d, place.shape[1])))[0].T
        means, teachers = place[:2] @ frame, place[2:] @ frame
        spread, bias = np.sqrt(problem.variance.values), problem.label_bias.values
        w = np.zeros(d)
        for _ in range(round(t * d)):
            group = (rng.random(batch) >= shares[0]).astype(int)
            x = means[group] + spread[group][:, None] * rng.normal(size=(batch, d))
            y = np.where((teachers[group] * x).sum(1) + bias[group] > 0, 1.0, -1.0)
            miss = x @ w - y
            here = [g for g in (0, 1) if (group == g).any()]
            J = np.stack([miss[group == g] @ x[group == g] / (group == g).sum() for g in here])
            seen = Seen(0.0, tuple(here), np.asarray(shares)[here], np.zeros(len(here)), gram=J @ J.T / d)
            w -= lr / d * law.pull(np.zeros(len(here)), seen) @ J
        M, R, Q = means @ w, teachers @ w, w @ w
        a = ((means * teachers).sum(1) + bias) / spread
        from scipy.special import erf

        m, g = erf(a / np.sqrt(2)), np.sqrt(2 / np.pi) * np.exp(-(a**2) / 2)
        found.append(0.5 * (M**2 + spread**2 * Q + 1 - 2 * (m * M + spread * g * R)))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("law", [I.NormalisedGradient(), I.UPGrad()], ids=["normalised", "UPGrad"])
def test_the_chain_of_gradients_is_the_plain_run(law):
    batch, d, t, seeds = 6, 40, 3.0, 120
    lr = 0.1 if isinstance(law, I.UPGrad) else 0.02
    runs = tm.simulate(C, steered(law, lr=lr, batch=batch), [t], d=d, seeds=seeds, curves=("loss",))
    one = runs["loss"].isel(time=0).values.T
    two = plain_gradients(C, law, lr, batch, d, t, seeds, (0.7, 0.3))
    error = np.sqrt((one.var(0, ddof=1) + two.var(0, ddof=1)) / seeds)
    assert (abs(one.mean(0) - two.mean(0)) / error).max() < 4.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "lr", "tolerance"),
    [(I.NormalisedGradient(), 0.05, 0.006), (I.UPGrad(), 0.2, 0.004)],
    ids=["normalised", "UPGrad"],
)
def test_the_chain_of_gradients_nears_its_limit(law, lr, tolerance):
    """1 << batch << d holds roughly at 64 of 300: the distance is that of the finite batch, not of chance."""
    sgd = steered(law, lr=lr, batch=64, proportions=EVEN)
    at = [2.0, 6.0, 10.0]
    runs = tm.simulate(A, sgd, at, d=300, seeds=6, curves=("loss",))
    distance = abs(runs["loss"].mean("seed") - tm.theory.gram_limit(A, sgd, at)["loss"])
    assert float(distance.max()) < tolerance
