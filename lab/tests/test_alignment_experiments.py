"""The experiments on two-layer networks: every safe claim holds, and each could fail."""

from dataclasses import replace

import pytest
import torch

from tiltmeter.modules.networks import TwoLayer
from tiltmeter.record import at
from tiltmeter_lab.catalogue import find, make_now
from tiltmeter_lab.named import early_alignment, four_neurons, growth_phase
from tiltmeter_lab.shared.symmetric_network import at_scale, clusters_of, descend, extremes_of, steps_to


def check(module, setting):
    runs = module.run(setting, make_now)
    for claim in module.claims(runs):
        assert claim.holds or not claim.safe, str(claim)
        assert claim.seeds == setting.seeds
    return runs


def test_early_alignment_in_short():
    runs = check(early_alignment, replace(early_alignment.QUICK, widths=(50,), steps_large=30))
    assert set(runs) == {"G", "width-50", "large"}
    assert set(early_alignment.pictures(runs)) >= {"The pull on a neuron by its direction"}


def test_early_alignment_fails_where_it_should():
    """Neurons that start large are not aligned at the end: the claim about directions then does not hold."""
    short = replace(early_alignment.QUICK, seeds=1, widths=(50,), scale=2.0, reached=300.0, steps_large=2)
    found = early_alignment.claims(early_alignment.run(short, make_now))
    assert [claim.holds for claim in found[1:3]] == [False, False]


def test_growth_phase_in_short():
    runs = check(growth_phase, replace(growth_phase.QUICK, widths=(50,), every=8))
    assert at_scale(runs["width-50"], "alignment", 1.0).min() > 0.99
    assert at_scale(runs["width-50"], "alignment", 1e9).isnull().all()
    assert len(growth_phase.pictures(runs)) == 2


def test_steps_to_a_scale_are_those_of_one_aligned_neuron():
    data, rate, lr = clusters_of(2, 16, 0), extremes_of(clusters_of(2, 16, 0)).rate, 0.1
    net = TwoLayer(torch.tensor([[1e-4, 0.0]], dtype=torch.float64), torch.tensor([1e-4], dtype=torch.float64))
    steps = steps_to(1e-4, net, rate, lr)
    run = descend(net, data, lr, steps, at([steps - 1]), 0)
    scale = run["network_scale"].values
    assert scale[-2] < 1e-4 * (1 + 1e-3)
    assert scale[-1] > 1e-4 * (1 - 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("module", [early_alignment, four_neurons, growth_phase], ids=lambda m: m.__name__)
def test_quick_settings(module):
    runs = check(module, module.QUICK)
    assert module.pictures(runs)


def test_they_are_in_the_catalogue():
    for name, module in (
        ("early-alignment", early_alignment),
        ("four-neurons", four_neurons),
        ("growth-phase", growth_phase),
    ):
        assert find(name) is module
        assert module.QUICK.seeds >= 3
        assert module.TITLE
        assert module.PAPER
        assert module.NEEDS == ()
        assert module.FULL.seeds > module.QUICK.seeds
