"""The experiments on networks at a size that runs in a moment: they end, and give the same numbers again."""

from dataclasses import replace

import numpy as np
import pytest

from tiltmeter_lab.catalogue import find, make_now

SMALL = {
    "bias-crossing": {
        "d": 50,
        "seeds": 3,
        "problems": 20,
        "network_d": 20,
        "width": 8,
        "steps": 60,
        "network_seeds": 2,
    },
    "three-phases": {"d": 50, "seeds": 3, "network_d": 20, "width": 8, "steps": 60, "network_seeds": 2},
    "deeper-wider": {"depths": (2, 3), "widths": (8,), "d": 20, "steps": 60, "seeds": 2},
    "other-protocols": {"d": 20, "width": 8, "steps": 60, "seeds": 2},
    "memorisation": {
        "problems": 20,
        "d": 20,
        "runs": 4,
        "width": 8,
        "steps": 30,
        "examples": 200,
        "held_out": 100,
        "seeds": 2,
    },
    "multi-class": {
        "pictures": ("digits",),
        "problems": 5,
        "d": 60,
        "seeds": 3,
        "points": 200,
        "held_out": 100,
        "width": 8,
        "steps": 20,
        "network_seeds": 2,
    },
    "warm-start": {
        "pictures": ("digits",),
        "problems": 5,
        "d": 50,
        "seeds": 3,
        "points": 200,
        "held_out": 100,
        "width": 8,
        "before": (0, 5, 10),
        "steps": 20,
        "network_seeds": 2,
    },
    "order-of-groups": {
        "pictures": ("digits",),
        "problems": 5,
        "d": 50,
        "seeds": 3,
        "points": 200,
        "held_out": 100,
        "width": 8,
        "steps": 20,
        "network_seeds": 2,
    },
    "overparametrisation-gap": {
        "pictures": ("digits",),
        "features": (0.5, 2.0, 30.0),
        "some": (0.5,),
        "d": 40,
        "seeds": 3,
        "points": 200,
        "held_out": 100,
        "widths": (4, 8),
        "feature_counts": (30, 300),
        "epochs": 1,
        "network_seeds": 2,
    },
    "second-settings": {
        "steps": 20,
        "width": 8,
        "orders": 3,
        "picture_points": 200,
        "picture_epochs": 1,
        "patch_steps": 10,
        "couplings": (0.0, 1.0),
        "seeds": 3,
    },
    "two-stage-inference": {"steps": 10, "long": 20, "scouts": (2, 5), "seeds": 2},
    "late-reopening": {"steps": 10, "seeds": 2},
    "optimiser-or-speed": {"steps": 20, "per_decade": 8, "seeds": 2},
    "erasure-reverses": {"steps": 5, "seeds": 2},
}
#: In the default suite: theory, simulation and networks in one.
FAST = ("bias-crossing",)


@pytest.mark.filterwarnings("ignore:.*different numbers of steps")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in SMALL])
def test_small_runs_are_the_same_every_time(name):
    module = find(name)
    setting = replace(module.QUICK, **SMALL[name])
    first, second = module.run(setting, make_now), module.run(setting, make_now)
    assert list(first) == list(second)
    for run in first:
        assert first[run] == second[run], run
    said = module.claims(first)
    np.testing.assert_array_equal([c.statistic for c in said], [c.statistic for c in module.claims(second)])
    assert all(str(claim) for claim in said)
    for title, chart in module.pictures(first).items():
        assert chart.to_dict()["$schema"], title


@pytest.mark.slow
def test_seeds_matter():
    module = find("deeper-wider")
    setting = replace(module.QUICK, **SMALL["deeper-wider"])
    more = module.run(replace(setting, seeds=3), make_now)["depth 2, width 8"]["loss"]
    fewer = module.run(setting, make_now)["depth 2, width 8"]["loss"]
    assert more.sizes["seed"] == 3
    # The first seeds are the same runs, to the precision of batched arithmetic.
    np.testing.assert_allclose(more.isel(seed=[0, 1]), fewer, atol=1e-5)
    assert (abs(more.isel(seed=2) - fewer.isel(seed=0)) > 1e-4).any()


def test_divergence_is_asked_of_students_that_train():
    """The theory leaves diverging points out by the formula that is claimed; simulated students might not."""
    module = find("phase-diagram")
    runs = dict(module.run(replace(module.QUICK, points=6, evaluations=20, d=100, seeds=3), make_now))
    about = "Training diverges beyond lr = 2 D / D2 and not below"
    assert next(claim for claim in module.claims(runs) if claim.sentence == about).holds
    length = runs["edge"]["Q"]
    runs["edge"] = runs["edge"].replace(
        {"Q": length.isel(over_limit=[0, 0]).assign_coords(over_limit=length.over_limit)}
    )
    assert next(claim for claim in module.claims(runs) if claim.sentence == about).statistic == 0.5
