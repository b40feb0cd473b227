"""The glossary in the docs is the glossary in the code."""

import re
from pathlib import Path

import pytest
import xarray as xr

from tiltmeter.names import CURVES, better_of, described

PAGE = Path(__file__).parents[1] / "docs" / "names.md"


def test_the_page_lists_every_curve_with_its_meaning():
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\w+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(name, curve.meaning, curve.better) for name, curve in CURVES.items()]


def test_a_curve_may_say_itself_which_way_is_better():
    own = xr.DataArray(0.0, attrs={"better": "higher"})
    assert better_of("my_score", own) == "higher"
    assert better_of("my_score", xr.DataArray(0.0)) == "neither"
    assert better_of("loss", xr.DataArray(0.0)) == "lower"
    with pytest.raises(ValueError, match="says better = 'up'"):
        better_of("x", xr.DataArray(0.0, attrs={"better": "up"}))


def test_unknown_curves_are_left_as_they_are():
    assert described("my_score", xr.DataArray(0.0)).attrs == {}
