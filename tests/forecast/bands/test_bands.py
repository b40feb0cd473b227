"""Bands of forecasts: factors, scales, limits, horizons, and what is named by them."""

import json

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter.forecast.bands import shipped_scores as table
from tiltmeter.forecast.bands.conformal import conformal_factor
from tiltmeter.forecast.bands.forecast_band import calibrated_band, forecast_band
from tiltmeter.forecast.bands.kind import KINDS, kind_of
from tiltmeter.forecast.bands.scale import _swing, scaled
from tiltmeter.record import Origin, Trajectory

TIMES = np.array([0, 1, 3, 10, 30, 100])
TWINS = {"route": {"name": "Twin"}, "calculation": {"order": "the run's own", "cut": {"0": [64, 8]}}, "replicas": 2}


def ahead(losses, settings=TWINS, more=None):
    """A forecast of these losses, (looks, groups) or (seeds, looks, groups)."""
    values = np.asarray(losses, dtype=float)
    dims, coords = ("time", "group"), {"time": TIMES[: values.shape[-2]], "group": ["a", "b"]}
    if values.ndim == 3:
        dims, coords = ("seed", *dims), {"seed": np.arange(len(values)), **coords}
    loss = xr.DataArray(values, dims=dims, coords=coords).transpose("time", ...)
    curves = {"loss": loss, **(more or {})}
    return Trajectory(curves, "step", Origin("forecast", settings=settings))


def falling(gap):
    """Two losses that fall from 0.7, with this difference at the end."""
    fall = np.linspace(0.0, 0.4, len(TIMES))
    return np.stack([0.7 - fall, 0.7 - fall - np.linspace(0.0, gap, len(TIMES))], 1)


@pytest.fixture
def calibrated(monkeypatch):
    """A calibration whose factor is 2 for gaps and 3 for levels of the loss."""
    scores = {kind: {"loss": {"gap": [[2.0]] * 12, "level": [[3.0]] * 12}} for kind in KINDS}
    monkeypatch.setattr(table, "shipped_scores", lambda: {"scores": scores})


def test_the_factor_is_exceeded_as_rarely_as_promised():
    rng = np.random.default_rng(0)
    missed = []
    for _ in range(4000):
        centres = rng.normal(size=21)  # tasks differ, their seeds resemble one another
        scores = [centre + 0.3 * rng.normal(size=2) for centre in centres[:20]]
        missed.append(centres[20] + 0.3 * rng.normal() > conformal_factor(scores, 0.1))
    rate = np.mean(missed)
    assert rate <= 0.1 + 3 * np.sqrt(0.09 / 4000)
    assert rate >= 0.1 - 1 / 21 - 3 * np.sqrt(0.09 / 4000)  # and not much wider than needed


def test_a_factor_needs_enough_tasks():
    assert conformal_factor([[1.0]] * 8, 0.1) == np.inf
    assert conformal_factor([[1.0]] * 9, 0.1) == 1.0
    assert conformal_factor([[1.0, np.nan]] * 9, 0.1) == np.inf  # a run without a value is a miss
    with pytest.raises(ValueError, match=r"`level` should lie strictly between 0 and 1. Found level = 1"):
        conformal_factor([[1.0]], 1)


def test_a_scale_begins_near_zero_grows_and_knows_about_replicas():
    same, apart = falling(0.2), falling(0.3)
    quiet, loud = (scaled(ahead(np.stack([same, one])), "loss", np.array([[1.0, -1.0]])) for one in (same, apart))
    assert quiet.scale[0, 0] < 1e-3
    assert quiet.scale[0, 0] < 0.1 * quiet.scale[1:].min()
    assert (loud.scale[1:] > quiet.scale[1:]).all()
    np.testing.assert_allclose(loud.told[:, 0], (same + apart)[:, 0] / 2 - (same + apart)[:, 1] / 2)
    still = scaled(ahead(np.full((6, 2), 0.7)), "loss", np.array([[1.0, -1.0]]))
    assert (still.scale == 0).all()  # what does not move is not uncertain


def test_a_scale_is_larger_where_the_course_is_steep():
    steps = np.array([0.0, 1.0, 2.0, 8.0])
    found = _swing(np.array([[0.0], [0.0], [1.0], [1.0]]), steps)
    assert found.ravel().tolist() == [0.0, 1.0, 1.0, 0.0]


def test_halves_of_the_sample_and_the_linearisation_widen_the_scale_of_a_kernel():
    plain = {"sample": 100, "calculation": {"method": "lanczos"}}
    error = xr.DataArray(
        np.full((6, 2), 0.1) * [1, -1], dims=("time", "group"), coords={"time": TIMES, "group": ["a", "b"]}
    )
    base, halves, bent = (
        scaled(ahead(falling(0.2), settings, more), "loss", np.array([[1.0, -1.0]])).scale
        for settings, more in (
            (plain, None),
            (plain, {"sample_error": error}),
            ({**plain, "horizon": {"linear": 10.0}}, None),
        )
    )
    assert (halves > base).all()
    assert (bent[:4] == base[:4]).all()
    assert (bent[4:] > base[4:]).all()


def test_limits_are_the_forecast_plus_and_minus_factor_times_scale(calibrated):
    told = ahead(falling(0.2))
    band = forecast_band(told)
    scale = scaled(told, "loss", np.array([[1.0, -1.0]]))
    assert band.gaps.dims == ("time", "pair", "bound")
    np.testing.assert_allclose(band.gaps.sel(bound="high").values, scale.told + 2 * scale.scale)
    np.testing.assert_allclose(band.gaps.sel(bound="low").values, scale.told - 2 * scale.scale)
    levels = scaled(told, "loss", np.eye(2))
    np.testing.assert_allclose(band.values.sel(bound="low").values, np.maximum(levels.told - 3 * levels.scale, 0.0))
    assert band.level == 0.1
    assert band.kind == "twins"


def test_a_leader_is_named_only_where_the_band_excludes_zero(calibrated):
    clear, small = (ahead(falling(gap)) for gap in (0.3, 0.005))
    shown = tm.standing(clear, "loss")
    assert shown.basis == "forecast"
    assert shown.level == 0.1
    assert shown.differences[0].leader[-1] == "b"
    assert tm.phases(clear)[-1].leader == "b"
    assert str(shown).startswith("As forecast (all 6 looks, one curve, 90 % band): b has the lower loss")
    silent = tm.standing(small, "loss")
    assert not silent.differences[0].sign.any()
    assert "At the last step the forecast names no leader of a and b in loss: its band contains zero." in str(silent)
    assert tm.phases(small) == ()
    assert tm.leader(small).values[-1] == ""


def test_the_horizon_tells_level_and_leader_apart(calibrated):
    found = tm.horizon(ahead(falling(0.3)), tolerance=0.1)
    assert found.leader == {("a", "b"): 100.0}
    assert 0 < found.level < 100
    assert tm.horizon(ahead(falling(0.3)), tolerance=10.0).level is None
    assert str(found).startswith("Level: the 90% band of loss is within ± 0.1 up to step ")
    assert str(found).endswith("Leader of a and b: named at the last step.")
    none = tm.horizon(ahead(falling(0.001)))
    assert none.leader == {("a", "b"): None}
    assert "Leader of a and b: named at no step, since the band contains zero" in str(none)
    with pytest.raises(ValueError, match=r"`tolerance` should be positive. Found tolerance = 0"):
        tm.horizon(ahead(falling(0.3)), tolerance=0)


@pytest.mark.parametrize(
    ("settings", "kind", "why"),
    [
        (TWINS, "twins", ""),
        ({**TWINS, "calculation": {"order": "one for every twin", "cut": {"0": [64, 8]}}}, "twins without order", ""),
        ({**TWINS, "route": {"name": "Twin", "count": 1}}, "one twin", ""),
        ({**TWINS, "route": {"name": "Twin", "count": 2}}, "twins", ""),
        (
            {
                "route": {"name": "Twin", "count": 1},
                "calculation": {"order": "one for every twin", "cut": {"0": [64, 8]}},
            },
            None,
            "no single twins without the run's order were calibrated",
        ),
        ({**TWINS, "calculation": {"order": "the run's own", "cut": {}}}, None, "it is a training itself"),
        ({**TWINS, "initialisations": 3}, None, "it is of several initial weights"),
        ({"sample": 50, "calculation": {"method": "lanczos"}}, "kernel", ""),
        ({"route": {"name": "Coordinates"}, "calculation": {"order": "the run's own"}}, "coordinates", ""),
        ({"route": {"name": "Coordinates"}, "calculation": {"from_step": 3}}, None, "it goes on from a training"),
        ({"route": {"name": "Coordinates"}, "calculation": {"order": "one for every replica"}}, None, "no coordinates"),
        ({**TWINS, "model": {"text": "(0): Conv2d(1, 8)"}}, None, "its network has other layers than Linear"),
        ({**TWINS, "model": {"text": "(0): Linear(1, 8)"}}, "twins", ""),
        ({}, None, "it does not say how it was calculated"),
    ],
)
def test_a_forecast_belongs_to_the_calibration_of_its_kind(settings, kind, why):
    found, reason = kind_of(ahead(falling(0.1), settings))
    assert found == kind
    assert reason.startswith(why)


def test_what_has_no_band_is_refused_in_a_sentence(calibrated):
    run = Trajectory(dict(ahead(falling(0.1))), "step", Origin("training"))
    with pytest.raises(ValueError, match=r"`ahead` should be a forecast .* Found that it is no forecast of a training"):
        forecast_band(run)
    assert calibrated_band(run, "loss") is None
    with pytest.raises(ValueError, match=r"`curve` should be one of loss, error.* Found 'margin'"):
        forecast_band(ahead(falling(0.1)), "margin")
    with pytest.raises(ValueError, match=r"`level` should be one that the calibration can promise .* level = 0.01"):
        forecast_band(ahead(falling(0.1)), level=0.01)


def test_pictures_and_the_command_line_show_the_band(calibrated):
    from tiltmeter.cli.band_json import band_to_json

    told = ahead(falling(0.3))
    chart = json.dumps(tm.plot.curves(told).to_dict())
    assert "bands: 90% of trainings" in chart
    assert "horizon of the forecast" in chart
    found = band_to_json(told, "loss")
    assert found["share"] == 0.9
    assert found["leader_horizon"] == [{"pair": ["a", "b"], "step": 100.0}]
    assert found["last"]["pair"][0]["low"] > 0
    json.dumps(found, allow_nan=False)


def test_a_forecast_without_a_band_says_so(calibrated):
    other = ahead(falling(0.3), {**TWINS, "model": {"text": "(0): Conv2d(1, 8)"}})
    said = str(tm.standing(other, "loss"))
    assert "This is a forecast without a calibrated band (its network has other layers than Linear" in said
    assert "without a calibrated band" not in str(tm.standing(ahead(falling(0.3)), "loss"))


def test_curves_without_a_leader_are_named(monkeypatch):
    each = {"gap": [[2.0]] * 12, "level": [[3.0]] * 12}
    monkeypatch.setattr(
        table, "shipped_scores", lambda: {"scores": {kind: {"loss": each, "error": each} for kind in KINDS}}
    )
    both = dict(ahead(falling(0.3))) | {"error": ahead(falling(0.001))["loss"].rename("error")}
    found = tm.standing(Trajectory(both, "step", ahead(falling(0.3)).origin), "loss", "error")
    assert found["loss", ("a", "b")].sign[-1] != 0
    assert "no leader of a and b in error: its band" in str(found)


def test_limits_stay_where_values_can_be(monkeypatch):
    wide = {"gap": [[1e3]] * 12, "level": [[1e3]] * 12}
    monkeypatch.setattr(
        table, "shipped_scores", lambda: {"scores": {kind: {"loss": wide, "error": wide} for kind in KINDS}}
    )
    told = ahead(falling(0.2))
    both = Trajectory({"loss": told["loss"], "error": told["loss"] / 2}, "step", told.origin)
    loss, error = (forecast_band(both, curve) for curve in ("loss", "error"))
    assert float(loss.values.min()) == 0.0
    assert float(loss.gaps.min()) < -1.0
    assert (float(error.values.min()), float(error.values.max())) == (0.0, 1.0)
    assert (float(error.gaps.min()), float(error.gaps.max())) == (-1.0, 1.0)
