"""Twins under interventions of groups follow full-batch training of a wide network to its end."""

import numpy as np
import pytest

import tiltmeter as tm

I = tm.interventions
INTERVENTIONS = [I.GroupDRO(0.02), I.VREx(5.0), I.NormalisedGradient(0.05), I.UPGrad()]


@pytest.mark.slow
@pytest.mark.parametrize("law", INTERVENTIONS, ids=lambda law: type(law).__name__)
def test_twins_follow_within_two_hundredths_to_the_end(wide_digits, law):
    """Where the kernel keeps .02 for 100 or 200 steps, because features change, twins keep it for all 600."""
    points = wide_digits.train, wide_digits.held_out
    recipe = tm.Recipe(lr=0.05, steps=600, batch=None, loss=tm.Square(), interventions=(law,))
    watch = tm.Watch(when=tm.record.at([0, 25, 50, 100, 150, 200, 300, 400, 600]), points=False)
    route = tm.methods.Twin(share=1 / 4, count=2)
    ahead = tm.forecast(wide_digits.network(), *points, recipe, watch=watch, method=route, progress=False)
    run = tm.train(wide_digits.network(), *points, recipe, watch=watch)
    told, seen = (wide_digits.by_agreement(loss) for loss in (ahead["loss"].mean("seed"), run["loss"]))
    assert abs(told - seen).max() <= 0.02
    assert np.ptp(seen, axis=1).max() > 0.05  # the losses move
