"""Reports of fully trained students."""

import pytest
import xarray as xr

import tiltmeter as tm

PROBLEM = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)


def test_a_curve_of_samples_has_a_table_a_chart_and_its_settings(tmp_path):
    found = tm.equilibrium(PROBLEM, tm.Square(), samples=("samples", [0.5, 2.0, 8.0]), ridge=0.3)
    text = tm.report([found], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Trained to the end" in text
    assert text.count('<div class="paper"><svg') == 1
    assert f'<td data-l="error">{float(found.error.sel(group="-", samples=2.0)):.4f}</td>' in text
    assert "ridge" in text


def test_one_point_saved_and_beside_a_run(tmp_path):
    tm.save(tm.equilibrium(PROBLEM, tm.Square(), samples=2.0, ridge=0.3), tmp_path / "end")
    tm.save(tm.predict(PROBLEM, tm.SGD(lr=0.1), [0.1, 1.0, 10.0]), tmp_path / "way")
    text = tm.report([tmp_path / "end", tmp_path / "way"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "end: trained to the end" in text
    assert "way" in text
    assert "Could it be chance?" in text


def test_other_datasets_are_refused(tmp_path):
    with pytest.raises(ValueError, match="here is no group error"):
        tm.report([xr.Dataset({"x": 1.0})], tmp_path / "page.html")
    with pytest.raises(TypeError, match=r"a list of runs, as \[run\]. Found int"):
        tm.report([3], tmp_path / "page.html")
