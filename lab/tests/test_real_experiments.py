"""Experiments on public data: they run, on tiny files in the true formats, and say what to do where data are absent."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

torch = pytest.importorskip("torch")

from data_sources import EVERY  # noqa: E402
from tiltmeter import Trajectory  # noqa: E402
from tiltmeter.record import Origin  # noqa: E402
from tiltmeter_lab.catalogue import EXPERIMENTS, find, make_now  # noqa: E402
from tiltmeter_lab.named import (  # noqa: E402
    bar_actions,
    celeba_pairs,
    cifar_groups,
    domino,
    rotated_mnist,
    tabular_groups,
    utkface_ages,
    utkface_tools,
)

pytestmark = pytest.mark.usefixtures("tiny")
MODULES = {
    "cifar-groups": cifar_groups,
    "rotated-mnist": rotated_mnist,
    "tabular-groups": tabular_groups,
    "celeba-pairs": celeba_pairs,
    "utkface-ages": utkface_ages,
    "utkface-tools": utkface_tools,
    "bar-actions": bar_actions,
    "domino": domino,
}


SMALL = {
    "cifar-groups": {"seeds": 2, "steps": 6, "hidden": 4, "held_out": 30},
    "rotated-mnist": {"seeds": 2, "steps": 6, "hidden": 4, "held_out": 100, "points": 90},
    "tabular-groups": {"seeds": 2, "steps": 6, "hidden": 4},
    "celeba-pairs": {"seeds": 2, "steps": 4, "width": 2, "points": 140, "side": 8},
    "utkface-ages": {"seeds": 2, "steps": 4, "width": 2, "points": 140, "side": 8},
    "utkface-tools": {"seeds": 2, "steps": 4, "width": 2, "points": 240, "side": 8, "copies": 3},
    "bar-actions": {"seeds": 2, "steps": 10, "width": 2, "side": 8},
    "domino": {"seeds": 2, "epochs": 2, "width": 2, "points": 150, "held_out": 150, "side": 8, "evaluations": 3},
}


@pytest.mark.parametrize("name", MODULES)
def test_it_runs_on_tiny_files(tiny, name):
    module = find(name)
    tiny(*module.NEEDS)
    setting = replace(module.QUICK, **SMALL[name])
    runs = module.run(setting, make_now)
    claims = module.claims(runs)
    assert claims
    assert all(claim.verdict != "not run" for claim in claims)
    assert all(len(str(claim)) < 900 for claim in claims)
    for chart in module.pictures(runs).values():
        assert chart.to_dict()["layer"]
    assert all(one["loss"].sizes["seed"] == 2 for one in runs.values())


def gaps(early, last, seeds=5):
    """A run of cifar-groups with these gaps at step 100 and at the end; their error over seeds is 0.001."""
    spread = np.linspace(-1.0, 1.0, seeds)
    noise = 0.001 * seeds**0.5 * spread / spread.std(ddof=1)
    loss = np.stack([np.array([0.0, early, last])[:, None] + noise, np.zeros((3, seeds))], axis=1)
    coords = {"time": [0, 100, 1200], "group": ["group 1", "group 2"], "seed": range(seeds)}
    curve = xr.DataArray(loss, dims=("time", "group", "seed"), coords=coords, attrs={"better": "lower"})
    return Trajectory({"loss": curve}, "step", Origin("toy", seeds=tuple(range(seeds))))


@pytest.mark.parametrize(
    ("early", "last", "statistic", "verdict"),
    [
        (0.02, -0.02, 1.0, "clear"),  # both are clear
        (0.02, -0.0025, 0.0, "undecided"),  # the last lead may be chance at one of five shares
        (0.02, 0.02, 0.0, "undecided"),  # no change at all
    ],
)
def test_a_lead_that_changes_at_one_of_several_shares_must_be_shown_to(early, last, statistic, verdict):
    runs = {f"rho {i}": gaps(0.02, 0.03) for i in range(4)} | {"rho 0.9": gaps(early, last)}
    claim = cifar_groups.claims(runs)[0]
    assert claim.statistic == statistic
    assert claim.verdict == verdict


def test_the_same_numbers_come_again(tiny):
    tiny("adult", "compas", "german")
    setting = replace(tabular_groups.QUICK, **SMALL["tabular-groups"])
    one, two = (tabular_groups.run(setting, make_now) for _ in range(2))
    assert all(one[name]["loss"].equals(two[name]["loss"]) for name in one)


@pytest.mark.parametrize("name", MODULES)
def test_absent_data_are_said_in_one_sentence(name):
    module = MODULES[name]
    with pytest.raises(FileNotFoundError) as error:
        module.run(module.QUICK, make_now)
    text = str(error.value)
    assert f"tiltmeter data get {module.NEEDS[0]}" in text or "its publishers provide it" in text
    assert "\n" not in text


@pytest.mark.parametrize("name", MODULES)
def test_what_every_experiment_offers(name):
    module = find(name)
    assert name in EXPERIMENTS
    assert module.TITLE
    assert module.PAPER
    assert set(module.NEEDS) <= set(EVERY)
    assert 3 <= module.QUICK.seeds <= module.FULL.seeds


def test_pairs_of_celeba_without_photographs_are_not_run():
    assert [claim.verdict for claim in celeba_pairs.claims({})] == ["not run"] * 6


def test_the_published_network_of_dominoes_is_made_and_scaled():
    model = domino.network(replace(domino.FULL, width=4))
    assert model(torch.zeros(2, 3, 64, 32)).shape == (2, 10)
    scale = next(m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)).weight
    assert torch.allclose(scale, torch.full_like(scale, 2.0**-5))


def test_dominoes_hold_the_photograph_and_its_digit(tiny):
    tiny("mnist", "cifar10")
    setting = replace(domino.QUICK, points=60, held_out=150, side=8)
    train, held_out = domino.data(setting, seed=0, digits=True)
    assert train.x.shape == (60, 3, 16, 8)
    assert train.groups == ("agree",)
    assert set(held_out.groups) == {"agree", "disagree"}
    blank, _ = domino.data(setting, seed=0, digits=False)
    assert blank.x[:, :, :8].std() == 0
    np.testing.assert_array_equal(blank.x[:, :, 8:], train.x[:, :, 8:])


def test_answers_of_rotated_mnist_start_at_zero_and_both_groups_show_the_same_digits(tiny):
    tiny("mnist")
    setting = replace(rotated_mnist.QUICK, held_out=100, points=90)
    train, held_out = rotated_mnist.two_groups(setting, (0.5, 2.0), None)
    upright, turned = (held_out.x[held_out.of_group(group)].reshape(-1, 28, 28) for group in ("upright", "turned"))
    np.testing.assert_allclose(np.rot90(upright, 1, (1, 2)) * 4, turned, rtol=1e-5)
    assert train.sizes == {"upright": 90, "turned": 90}
    assert rotated_mnist.network(5)(torch.ones(3, 784)).abs().max() == 0
