"""plot.save: every format, with no network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter import plot

PROBLEM, SGD, _ = tm.theory.cases.three_phases()
THEORY = tm.predict(PROBLEM, SGD, np.geomspace(0.01, 200.0, 60), curves=("loss", "M", "R", "Q"))
CHART = plot.curves(THEORY, leaders=tm.leaders(THEORY, "loss"), timescales=tm.timescales(PROBLEM, SGD))


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")])
def test_pictures_begin_as_they_should(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = plot.save(CHART, tmp_path / f"loss.{suffix}")
    assert path.read_bytes().startswith(magic)
    assert path.stat().st_size > 5_000


def test_png_is_drawn_at_twice_its_size(tmp_path: Path) -> None:
    head = plot.save(CHART, str(tmp_path / "loss.PNG")).read_bytes()[:24]
    width, height = (int.from_bytes(head[i : i + 4]) for i in (16, 20))
    assert width > 2 * 560
    assert height > 2 * 300


def test_svg_holds_labels_legend_and_no_zero_time(tmp_path: Path) -> None:
    text = plot.save(CHART, tmp_path / "loss.svg").read_text()
    for word in ("τ", "larger variance", "+ leads", "group", "t = steps/d", "loss (half squared error)", ">0.01<"):
        assert word in text
    assert "NaN" not in text


def test_html_fetches_nothing(tmp_path: Path) -> None:
    page = plot.save(CHART, tmp_path / "loss.html").read_text()
    assert not re.findall(r"<script[^>]+src\s*=", page)
    outside = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"src\s*=|href\s*=|https?:|@import|url\(", outside)
    assert not re.findall(r"(?:import|fetch)\s*\(\s*[\"'`]https?:", page)
    assert "vegaEmbed" in page
    assert "larger variance" in page
    assert "editor: false" in page


def test_json_is_the_description(tmp_path: Path) -> None:
    spec = json.loads(plot.save(CHART, tmp_path / "loss.json").read_text())
    assert spec["layer"] == json.loads(CHART.to_json())["layer"]


@pytest.mark.parametrize(
    "chart",
    [
        plot.order_parameters(THEORY, tm.timescales(PROBLEM, SGD), title="Overlaps"),
        tm.theory.plot.drivers(tm.drivers(PROBLEM, SGD, np.geomspace(0.01, 200.0, 40))),
        tm.theory.plot.phase_diagram(
            tm.predict(
                tm.teacher_mixture(rho=("rho", [0.2, 0.5, 0.8]), overlap=("overlap", [0.0, 0.5])),
                tm.SGD(lr=0.1),
                [1.0, 10.0],
                curves=("loss",),
            )
        ),
    ],
    ids=["order_parameters", "drivers", "phase_diagram"],
)
def test_every_picture_can_be_drawn(tmp_path: Path, chart: object) -> None:
    text = plot.save(chart, tmp_path / "any.svg").read_text()  # type: ignore[arg-type]
    assert text.startswith("<svg")
    assert "NaN" not in text


@pytest.mark.parametrize("name", ["loss.gif", "loss", "loss.tar.gz"])
def test_unknown_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"should end in one of \.png, \.svg, \.pdf, \.html, \.json\. Found '{name}'\."
    ):
        plot.save(CHART, tmp_path / name)


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"should lie in an existing directory\. Found none at .*nowhere"):
        plot.save(CHART, tmp_path / "nowhere" / "loss.png")


def test_not_a_chart(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"`chart` should be an Altair chart\. Found Trajectory\."):
        plot.save(THEORY, tmp_path / "loss.png")  # type: ignore[arg-type]
