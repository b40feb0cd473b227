"""Every picture says what it shows: a title, and axis names in words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tiltmeter as tm
from tiltmeter import plot
from tiltmeter.record import Origin, Trajectory

lab = pytest.importorskip("tiltmeter_lab")

#: Names of `tm.plot` that draw no picture of their own.
OTHERS = {"as_groups", "run_channels", "save", "theme"}
CASE = tm.theory.cases.three_phases()
PROBLEM = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5)
RNG = np.random.default_rng(0)


def runs() -> dict[str, Trajectory]:
    arms = {"plain": (), "DRO": (tm.interventions.GroupDRO(rate=5.0, by="draws"),)}
    times = [0.0, 1.0, 5.0, 20.0, 60.0]
    return {name: tm.predict(PROBLEM, tm.SGD(lr=0.2, interventions=arm), times) for name, arm in arms.items()}


def sizes() -> Trajectory:
    fixed = tm.Fixed(("samples", np.geomspace(0.4, 4.0, 5)))
    return tm.predict(PROBLEM, tm.Flow(lr=1.0), np.geomspace(0.1, 30.0, 10), data=fixed, curves=("loss",))


def both_parameters() -> Trajectory:
    rho, overlap = ("rho", np.linspace(0.1, 0.9, 4)), ("overlap", np.linspace(0.0, 1.0, 4))
    problem = tm.teacher_mixture(rho=rho, variance=(0.5, 1.5), overlap=overlap)
    return tm.predict(problem, tm.SGD(lr=0.1), np.geomspace(0.01, 200.0, 20), curves=("loss",))


def classes() -> Trajectory:
    return tm.predict(tm.theory.class_mixture(3, rho=0.7), tm.SGD(lr=0.2), [0.1, 1.0, 10.0], curves=("class_loss",))


def fixed_set() -> Any:
    return tm.theory.memorisation(PROBLEM, tm.Flow(lr=1.0), np.geomspace(0.01, 100.0, 20), tm.Fixed(samples=2.0))


def slices() -> Trajectory:
    values = xr.DataArray(
        RNG.normal(size=(2, 2, 5)),
        dims=("time", "group", "offset"),
        coords={"time": [0, 5], "group": ["a", "b"], "offset": np.linspace(-0.2, 0.2, 5)},
    )
    return Trajectory({"loss_slice": values}, "step", Origin("training"))


def table() -> xr.DataArray:
    return xr.DataArray(RNG.normal(size=(2, 3, 5)), dims=("width", "lr", "seed"), name="error_gap")


def layers_over_time() -> xr.DataArray:
    coords = {"time": [1, 10, 100], "layer": ["a", "b"]}
    return xr.DataArray(RNG.normal(size=(3, 2, 4)), dims=("time", "layer", "seed"), coords=coords, name="rank")


def ratios() -> xr.DataArray:
    coords = {"time": [0], "ratio": [1.0, 10.0]}
    return xr.DataArray(RNG.normal(size=(1, 3, 2)), dims=("time", "seed", "ratio"), coords=coords)


def wave() -> xr.DataArray:
    return xr.DataArray(np.cos(np.radians(np.arange(0, 360, 5))), coords={"angle": np.arange(0, 360, 5)})


def trained() -> xr.Dataset:
    return tm.equilibrium(PROBLEM, tm.Square(), ("samples", [0.5, 1.0, 2.0]), ridge=0.3)


PICTURES: dict[str, Callable[[], Any]] = {
    "angles": lambda: lab.plot.angles(wave()),
    "areas": lambda: plot.areas(tm.scorecard(runs())),
    "cell_means": lambda: lab.plot.cell_means(table(), x="lr", colour="width"),
    "class_curves": lambda: plot.class_curves(classes()),
    "curves": lambda: plot.curves(tm.predict(*CASE), curve="error_gap"),
    "double_descent": lambda: tm.theory.plot.double_descent(sizes()),
    "drivers": lambda: tm.theory.plot.drivers(tm.drivers(*CASE)),
    "equilibrium_sweep": lambda: tm.theory.plot.equilibrium_sweep(trained()),
    "labelled_lines": lambda: lab.plot.labelled_lines(layers_over_time(), "layer"),
    "loss_plane": lambda: plot.loss_plane(runs()),
    "loss_slices": lambda: lab.plot.loss_slices(slices()),
    "memorisation": lambda: tm.theory.plot.memorisation(fixed_set()),
    "order_parameters": lambda: plot.order_parameters(tm.predict(*CASE)),
    "phase_diagram": lambda: tm.theory.plot.phase_diagram(both_parameters()),
    "pulls": lambda: plot.pulls(runs()),
    "reliance": lambda: lab.plot.reliance({"linear": ratios()}),
    "variance_shares": lambda: lab.plot.variance_shares([lab.shares(table(), draws=20, permutations=0)]),
    "who_paid": lambda: plot.who_paid(tm.scorecard(runs())),
}


def words_of(title: Any) -> str:
    """The text of a title of a chart or an axis."""
    title = title.get("text") if isinstance(title, dict) else title
    return " ".join(title) if isinstance(title, list) else title or ""


def axis_names(part: Any) -> list[str]:
    """The names of all axes inside a chart that have one."""
    if isinstance(part, list):
        return [name for one in part for name in axis_names(one)]
    if not isinstance(part, dict):
        return []
    here = [words_of(part["axis"].get("title"))] if isinstance(part.get("axis"), dict) else []
    return [*here, *(name for key, one in part.items() if key != "datasets" for name in axis_names(one))]


def test_every_picture_of_the_package_is_here() -> None:
    assert set(PICTURES) == {*plot.__all__, *tm.theory.plot.__all__, *lab.plot.__all__} - OTHERS


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_has_a_title_and_axis_names_in_words(name: str) -> None:
    chart = PICTURES[name]().to_dict()
    title = words_of(chart.get("title"))
    assert len(title.split()) >= 3
    assert title[0].isupper()
    names = [words for words in axis_names(chart) if words]
    assert names or name == "variance_shares"  # its rows and columns are named one by one
    assert not [words for words in [title, *names] if "_" in words]


def test_a_title_of_ones_own_replaces_it_and_an_empty_one_leaves_it_out() -> None:
    assert words_of(lab.plot.angles(wave(), title="Mine").to_dict()["title"]) == "Mine"
    assert "title" not in lab.plot.angles(wave(), title="").to_dict()
