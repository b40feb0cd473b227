"""The house: imports point down, and the front door is light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tiltmeter"

# Top to bottom; a module imports only from lines below its own (or from its own room).
LAYERS = [
    ["results"],
    ["cli"],
    ["explorer"],
    ["report"],
    ["plot", "export"],
    ["advice"],
    ["study", "discover"],
    ["fairness"],
    ["leaders"],
    ["forecast"],
    ["theory", "simulation", "training", "predictions"],
    ["measures"],
    ["modules"],
    ["recipe"],
    ["data"],
    ["population"],
    ["problem"],
    ["interventions"],
    ["losses", "schedules"],
    ["pairs"],
    ["names", "over_seeds", "progress", "question", "threads"],
    ["record"],
    ["arguments"],
    ["child_process", "compiled", "lazy_names", "plugins", "shown_text", "version"],
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(
    path for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py") or path.parent != SOURCE
)


def room(path):
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path):
    """Every room of the house that a file imports, function-level imports included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "tiltmeter":
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("tiltmeter."))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    own = room(path)
    assert own in LEVEL, f"{own} has no layer: add it to the list"
    for other in imported_rooms(path):
        if other != own:
            assert other in LEVEL, f"{path} imports {other}, which is no room of the house"
            assert LEVEL[other] > LEVEL[own], f"{own} must not import {other}"


@pytest.mark.parametrize("part", ["src", "benchmarks", "docs/draw", "docs/ext", "docs/notebooks", "tests"])
def test_nothing_but_the_laboratory_needs_the_laboratory(part):
    """`pytest.importorskip` in a test is not an import; the pages of the evidence are the laboratory's own."""
    for path in (SOURCE.parents[1] / part).rglob("*.py"):
        if path.name == "evidence.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "tiltmeter_lab"], path


def test_the_laboratory_is_not_needed_by_the_pages_of_the_library():
    for page in [p for p in (SOURCE.parents[1] / "docs").rglob("*.md") if p.parent.name != "lab"]:
        assert "import tiltmeter_lab" not in page.read_text(encoding="utf-8")
        assert "from tiltmeter_lab" not in page.read_text(encoding="utf-8")


def test_no_relative_imports_hide_from_this_test():
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level > 0], path


def test_importing_tiltmeter_loads_nothing_heavy():
    code = (
        "import sys, tiltmeter; heavy = {'torch', 'altair', 'numba', 'sklearn', 'scipy', 'matplotlib'} & set(sys.modules);"
        "print(sorted(heavy)); sys.exit(bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_daily_name_can_be_had_and_is_documented():
    import tiltmeter

    for name in tiltmeter.__all__:
        value = getattr(tiltmeter, name)
        assert name == "__version__" or value.__doc__, name
    with pytest.raises(AttributeError, match="no 'predit'"):
        _ = tiltmeter.predit
    assert "predict" in dir(tiltmeter)


def test_the_map_of_the_code_names_every_room_and_no_other():
    text = (SOURCE.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    drawn = text.partition("```text\n")[2].partition("```")[0]
    heads = (re.match(r"[a-z_, ]+?(?:  |$)", line) for line in drawn.splitlines() if not line.startswith(" "))
    named = {name for head in heads if head for name in head[0].strip().split(", ")}
    assert named | {"results"} == set(LEVEL)


def test_every_measure_of_the_catalogue_is_a_public_name():
    import tiltmeter as tm
    from tiltmeter_lab.measures.catalogue import MEASURES

    missing = [place for place in MEASURES.values() if not hasattr(tm.measures, place.partition(":")[2])]
    assert missing == []
