"""The laboratory's experiments are customers of the library: they import public names, but for a few with a reason."""

import ast
import inspect
from pathlib import Path

import pytest

import tiltmeter as tm

SOURCE = Path(__file__).parents[1] / "src" / "tiltmeter_lab"
#: Rooms that extend the library with the means that its own rooms have: measures, studies, data sets, pictures, verbs.
EXTENSIONS = ("measures", "study", "data", "interventions", "plot", "cli")
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in EXTENSIONS)
MOST = 15
#: What is imported from inside tiltmeter all the same, and why.
ALLOWED = {
    # The experiments about error rates and coverage measure these very functions, not what is made of them.
    "tiltmeter.leaders.bands.Band": "measured by false-alarms",
    "tiltmeter.leaders.bands.bands": "measured by false-alarms",
    "tiltmeter.leaders.bands.Limits": "measured by false-alarms and forecast-bands",
    "tiltmeter.leaders.points.pairs": "measured by false-alarms and forecast-bands",
    "tiltmeter.leaders.points.PointCurve": "measured by false-alarms",
    "tiltmeter.leaders.seed_bands.two_way": "measured by forecast-bands",
    "tiltmeter.lazy_names.offer": "offers names in the same way",
    "tiltmeter.record.directory.atomic_files.write_atomically": "writes a file whole or not at all",
    "tiltmeter.record.directory.atomic_files.write_sealed_json": "the same, with a checksum",
    "tiltmeter.record.directory.atomic_files.read_sealed_json": "reads it, or says how it is damaged",
}

#: The calibration of promises measures these very functions.
BANDS = {
    *("tiltmeter.forecast.bands.FACTORS", "tiltmeter.forecast.bands.calibrated_scale"),
    "tiltmeter.forecast.bands.spread_limits",
}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "tiltmeter")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tiltmeter":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def addresses(path):
    """Every `tm.a.b` in a file, as a tuple of names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id == "tm" and names:
            yield tuple(reversed(names))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_public_names_are_used(path):
    assert {name for name in imported(path) if name != "tiltmeter"} <= {*ALLOWED, *BANDS}
    for names in addresses(path):
        room = tm
        for name in names:
            assert name in room.__all__ or name == "__version__", f"tm.{'.'.join(names)} is not public"
            room = getattr(room, name)
            if not inspect.ismodule(room):
                break


def test_the_exceptions_are_few_and_all_in_use():
    assert len(ALLOWED) <= MOST
    assert {*ALLOWED, *BANDS} == {name for path in FILES for name in imported(path)} - {"tiltmeter"}
