"""Pictures of trained students: what is drawn, and what is refused."""

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import plot
from trained_sets import train_to_equilibrium

PROBLEM = tm.teacher_mixture(0.8, 0.0, (0.5, 1.5), 0.5)
CURVE = tm.equilibrium(PROBLEM, tm.Square(), ("samples", np.geomspace(0.3, 10, 6)), 0.3)
RUN = train_to_equilibrium(PROBLEM, tm.Square(), ("samples", [0.5, 2.0]), 0.3, 20, 3)


def drawn_rows(chart, layer):
    """The rows of one layer, wherever Altair has put them."""
    data = layer["data"]
    return data["values"] if "values" in data else chart["datasets"][data["name"]]


def test_error_and_its_gap_against_samples():
    whole = tm.theory.plot.equilibrium_sweep(CURVE).to_dict()
    drawn = whole["vconcat"]
    assert len(drawn) == 2
    first = drawn[0]["layer"][0]
    assert first["encoding"]["x"]["scale"]["type"] == "log"
    assert first["encoding"]["x"]["axis"]["title"] == "samples (examples per dimension)"
    assert len(drawn_rows(whole, first)) == 12
    assert {row["series"] for row in drawn_rows(whole, drawn[1]["layer"][0])} == {"+ vs -"}


def test_measurements_are_marks_with_bars():
    whole = tm.theory.plot.equilibrium_sweep(CURVE, RUN, curves=("error",)).to_dict()
    layers = whole["vconcat"][0]["layer"]
    kinds = [layer["mark"]["type"] for layer in layers]
    assert kinds == ["line", "rule", "point", "point"]
    bar = drawn_rows(whole, layers[1])[0]
    values = RUN.error.sel(group="+", samples=0.5).values
    assert bar["high"] - bar["low"] == pytest.approx(4 * values.std(ddof=1) / np.sqrt(3), rel=1e-5)


def test_a_curve_without_groups_needs_no_legend():
    layers = tm.theory.plot.equilibrium_sweep(CURVE, curves=("risk",)).to_dict()["vconcat"][0]["layer"]
    assert len(layers) == 1
    assert "color" not in layers[0]["encoding"]


def test_linear_grids_get_linear_axes():
    even = tm.equilibrium(tm.teacher_mixture(("rho", [0.2, 0.4, 0.6, 0.8])), tm.Square(), 2.0, 0.3)
    layer = tm.theory.plot.equilibrium_sweep(even, title="By share").to_dict()["vconcat"][0]["layer"][0]
    assert "type" not in layer["encoding"]["x"]["scale"]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_it_can_be_saved(tmp_path, suffix):
    assert (
        plot.save(tm.theory.plot.equilibrium_sweep(CURVE, title="Trained"), tmp_path / f"a.{suffix}").stat().st_size
        > 1000
    )


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(TypeError, match=r"`equilibrium` draws Datasets of trained students. Found str."):
        tm.theory.plot.equilibrium_sweep("curve")
    with pytest.raises(KeyError, match="No curve 'accuracy'"):
        tm.theory.plot.equilibrium_sweep(CURVE, curves=("accuracy",))
    with pytest.raises(ValueError, match="`curves` should name at least one curve"):
        tm.theory.plot.equilibrium_sweep(CURVE, curves=())
    with pytest.raises(ValueError, match=r"over exactly one grid dimension. Found none"):
        tm.theory.plot.equilibrium_sweep(CURVE.isel(samples=0))
    with pytest.raises(KeyError, match="No grid dimension 'ridge'"):
        tm.theory.plot.equilibrium_sweep(CURVE, x="ridge")
