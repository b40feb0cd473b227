"""What goes into a file comes back the same, whatever the labels and numbers; parts of data are parts."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiltmeter as tm
from strategies import grouped_data, mixtures, recipes, trajectories

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
pytestmark = pytest.mark.filterwarnings("ignore:Groups with fewer")


@few
@given(trajectories())
def test_a_saved_trajectory_is_the_one_that_is_loaded(run):
    with tempfile.TemporaryDirectory() as folder:
        tm.save(run, Path(folder) / "run")
        again = tm.load(Path(folder) / "run")
        assert tm.record.check(Path(folder) / "run").ok
    assert again == run
    for name, curve in run.items():
        np.testing.assert_array_equal(again[name].values, curve.values)
        assert again[name].dims == curve.dims
        for dim in curve.dims:
            assert list(map(repr, again[name].coords[dim].values.tolist())) == list(
                map(repr, curve.coords[dim].values.tolist())
            )


@few
@given(trajectories())
def test_every_value_reaches_a_tracker(run):
    seen = {}
    if all((curve.coords["time"].values % 1 == 0).all() for curve in run.values()):
        tm.export.track(run, lambda values, step: seen.update({(step, n): v for n, v in values.items()}))
        assert len(seen) == sum(int(np.isfinite(curve.values).sum()) for curve in run.values())


@few
@given(trajectories())
def test_text_and_html_are_always_there(run):
    assert repr(run)
    assert "<script" not in run._repr_html_()


@few
@given(recipes())
def test_a_recipe_survives_json(recipe):
    assert tm.Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@few
@given(mixtures())
def test_a_mixture_survives_json(vectors):
    problem = tm.theory.Mixture.from_vectors(**vectors)
    assert tm.theory.Mixture.from_json(json.loads(json.dumps(problem.to_json()))) == problem


@few
@given(grouped_data(), st.integers(0, 1000))
def test_both_parts_of_a_split_are_all_points_once(data, seed):
    train, held_out = data.split(held_out=0.5, seed=seed)
    assert train.groups == held_out.groups == data.groups
    assert {g: train.sizes[g] + held_out.sizes[g] for g in data.groups} == data.sizes
    together = np.sort(np.concatenate([places(train), places(held_out)]))
    np.testing.assert_array_equal(together, np.sort(places(data)))
    json.dumps(data.to_json())


def places(data):
    """A number that tells the points apart."""
    x = data.x.parts["x"] if hasattr(data.x, "parts") else data.x
    return np.asarray(x)[:, 0]
