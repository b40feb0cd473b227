"""What the search and the judgement promise, on draws whose seeds were fixed before they were run."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import tiltmeter as tm
from discovered_runs import made_run, margins, people
from tiltmeter.data.public.presence import data_folder
from tiltmeter.discover.curves import learning_curves

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
#: Draws of this file; those of the script are its own.
SEED = 3401
DRAWS = 20


def script(name):
    sys.path.insert(0, str(BENCHMARKS))
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def slices():
    return script("_discover_slices")


def needs(name):
    if not (data_folder() / name).is_dir():
        pytest.skip(f"{name} is not on this machine: tiltmeter data get {name}")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_exchanged_curves_give_no_more_findings_than_the_level():
    """Curves exchanged against the table, every rule judged: 200 draws, at most 5 % and two standard errors."""
    table, clear = people(1500), 0
    course = margins(1500, late=table["job"] == "cook", hard=table["age"] > 67)
    rng = np.random.default_rng(SEED)
    for draw in range(200):
        order = rng.permutation(1500)
        run = made_run(course[:, order], positive=(np.arange(1500) % 2 == 0)[order])
        clear += bool(tm.discover(run, table, floor=1.0, seed=draw).clear)
    assert clear <= 200 * 0.05 + 2 * np.sqrt(200 * 0.05 * 0.95)


def overlaps(slices, kind, number):
    """The largest overlap with a planted slice of Adult: of what is found, and of the pursuit on the final loss."""
    table = slices.adult()
    both, final = [], []
    for draw in range(DRAWS):
        rng = np.random.default_rng([SEED, number, draw])
        _, members, x, y = slices.planted(kind, table, rng)
        order = rng.permutation(len(y))
        held_out = order[table.trained :]
        run = slices.trained(x, y, order[: table.trained], held_out, seed=100 * number + draw)
        rows = table.rows.iloc[held_out]
        discovery = tm.discover(run, rows, seed=draw)
        judges, inside = discovery.judges, members[held_out]
        masks = [group.rule.holds(discovery.columns)[judges] for group in discovery.groups]
        both.append(max((slices.overlap(mask, inside[judges]) for mask in masks), default=0.0))
        given = slices.setting(rows, ~judges, learning_curves(run).loss[0])
        final.append(max((slices.overlap(mask, inside[judges]) for mask in slices.by_final_loss(given)), default=0.0))
    return np.array(both), np.array(final)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_slices_with_reversed_labels_are_found_by_their_curves(slices):
    needs("adult")
    both, final = overlaps(slices, "reversed labels", 0)
    assert (both > 0.5).mean() >= 0.75
    assert (final > 0.5).mean() <= 0.40


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_slices_with_label_noise_are_found(slices):
    needs("adult")
    both, _ = overlaps(slices, "label noise", 1)
    assert (both > 0.5).mean() >= 0.75


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_easy_subclass_of_pictures_is_never_worse():
    """A negative control: inverted pictures of one class are learned easily."""
    needs("fashion-mnist")
    torch = pytest.importorskip("torch")
    pictures = script("_discover_pictures")
    for draw in range(DRAWS):
        x, y, some = pictures.changed_pictures("inverted", np.random.default_rng([SEED, 5, draw]))
        first, rest = slice(pictures.IMAGES_TRAINED), slice(pictures.IMAGES_TRAINED, None)
        torch.manual_seed(draw)
        parts = [pictures.all_together(x[part], y[part]) for part in (first, rest)]
        run = tm.train(
            pictures.network(x.shape[1], 10, (128, 64)), *parts, pictures.recipe(1000), seed=draw, watch=pictures.WATCH
        )
        discovery = tm.discover(run, features={"input": x[rest]}, seed=draw)
        for group in discovery.clear:
            members = group.rule.holds(discovery.columns)
            assert (members & some[rest]).sum() < 0.5 * members.sum(), (draw, group.name)
