"""Random groups, known differences and populations, on digits: the promises of the bands, by counting."""

from dataclasses import replace

import numpy as np
import pytest

from tiltmeter.experiments.catalogue import make_now
from tiltmeter.experiments.named import false_alarms
from tiltmeter.experiments.shared.alarm_rates import NULL, joined, power_difference, share
from tiltmeter.experiments.shared.random_deals import ANY, CURVES

#: More false alarms than this in 96 deals at 5 % have a probability of 0.004.
MOST = 11


@pytest.fixture(scope="module")
def deals():
    setting = replace(
        false_alarms.FULL, tasks=("digits",), populations=(), seeds=96, block=48, bootstrap=499, permutations=399
    )
    return false_alarms.run(setting, make_now)


@pytest.mark.slow
@pytest.mark.parametrize("curve", [*CURVES, ANY])
def test_random_groups_get_a_leader_as_rarely_as_stated(deals, curve):
    named = joined(deals, NULL, "named").sel(curve=curve)
    assert named.sel(rule="bands").sum() <= MOST
    assert named.sel(rule="look by look").sum() > named.sel(rule="bands").sum()  # the negative control


@pytest.mark.slow
def test_crossings_are_rare_where_there_is_none(deals):
    for name in ("crossed", "crossed_flipped"):
        assert joined(deals, NULL, name).sel(rule="bands", curve=ANY).sum() <= MOST
    assert joined(deals, NULL, "crossed_shifted").sum() <= MOST


@pytest.mark.slow
def test_known_differences_are_found_as_often_as_look_by_look_at_equal_false_alarms(deals):
    difference, error, _ = power_difference(deals)
    assert difference > -2 * error
    found = joined(deals, NULL, "named_flipped").sel(rule="bands", curve="loss")
    assert share(found)[0] > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [5, 10])
def test_two_way_bands_cover_the_recipe_and_seeds_alone_do_not(seeds):
    setting = replace(false_alarms.FULL, recipe_runs=60, recipe_draws=60)
    run = false_alarms.recipe_draws(setting, "digits", seeds)
    missed = run["missed"].isel(time=0).sel(curve="loss")
    assert missed.sum() <= 9  # at 5 % of 60: more has a probability of 0.001
    assert run["named"].sum() <= 9
    assert np.isfinite(run["width"].sel(curve="loss")).all()
