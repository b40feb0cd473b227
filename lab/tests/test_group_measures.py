"""Claims about groups from made-up readings: which are asked for, and that each can fail."""

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Trajectory, log_spaced
from tiltmeter_lab.named import group_measures as experiment

TIMES = [0, 1, 10, 100, 300]


def runs(**changed):
    """Three seeds of constant readings, some of them changed."""

    def curve(value, **coords):
        sizes = (len(TIMES), *(len(labels) for labels in coords.values()), 3)
        full = np.broadcast_to(np.asarray(value, dtype=float), sizes) + 1e-3 * np.arange(3)
        return xr.DataArray(full, dims=("time", *coords, "seed"), coords={"time": TIMES, **coords, "seed": range(3)})

    two = {"group": ["turned", "upright"]}
    values = {"amplification": 0.29, "subgroup_auc": 0.9, "bpsn_auc": 0.1, "bnsp_auc": 0.8, "gradient_pull": 0.5}
    values |= {"opposing_concentration": 0.2, "bias_bits_short": -0.1} | changed
    curves = {
        "amplification": curve(values["amplification"]),
        **{name: curve(values[name], **two) for name in ("subgroup_auc", "bpsn_auc", "bnsp_auc")},
        "gradient_pull": curve(values["gradient_pull"], **two).isel(seed=[0, 0, 0]).assign_coords(seed=range(3)),
        "gradient_noise_scale": curve(8.0),
        "kernel_alignment": curve(0.5, mode=[1, 2]),
        "opposing_concentration": curve(values["opposing_concentration"]),
        "opposing_concentration_null": curve(0.02),
        "bias_bits_short": curve(values["bias_bits_short"], target=["0.5", "model"]),
    }
    return {"training": Trajectory(curves, "step", Origin("training", seeds=(0, 1, 2)))}


def by_word(found):
    return {claim.sentence.split()[1]: claim for claim in experiment.claims(found)}


def test_what_is_asked_for_is_read_early_in_training():
    claims = by_word(runs())
    assert [word for word, claim in claims.items() if claim.safe] == ["model", "label", "the"]
    assert all(claim.holds for claim in claims.values() if claim.safe)
    assert claims["model"].statistic == pytest.approx(0.291)
    assert claims["label"].statistic == pytest.approx(0.8)
    assert not claims["networks"].holds


@pytest.mark.parametrize(
    ("word", "changed"),
    [("model", {"amplification": 0.02}), ("label", {"bpsn_auc": 0.8}), ("the", {"gradient_pull": 0.6})],
)
def test_safe_claims_can_fail(word, changed):
    assert not by_word(runs(**changed))[word].holds


def test_a_curve_without_numbers_was_not_run():
    claims = by_word(runs(bias_bits_short=np.nan))
    assert claims["networks"].verdict == "not run"


def test_both_scales_look_early():
    for setting in (experiment.QUICK, experiment.FULL):
        assert log_spaced(setting.per_decade)(experiment.EARLY)
        assert setting.seeds >= 3
