"""The house: imports point down, and the front door is light."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tiltmeter"

#: The houses of this distribution. The core never imports the wings; the wing of the explorer may import that of theory.
WINGS = {"theory": {"theory"}, "explorer": {"explorer", "theory"}}
# The core, top to bottom; a module imports only from lines below its own (or from its own room).
LAYERS = [
    ["results"],
    ["cli"],
    ["report"],
    ["plot", "export"],
    ["advice"],
    ["changes"],
    ["discover"],
    ["fairness"],
    ["forecast"],
    ["preview"],
    ["leaders"],
    ["training", "predictions"],
    ["measures"],
    ["modules"],
    ["recipe"],
    ["data"],
    ["interventions"],
    ["criteria", "losses", "schedules"],
    ["pairs"],
    ["names", "over_seeds", "progress", "question", "threads"],
    ["record"],
    ["arguments"],
    ["child_process", "lazy_names", "plugins", "shown_text", "version"],
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FILES = sorted(
    path for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py") or path.parent != SOURCE
)
#: Files of ours that one file of the core may import.
MOST_IMPORTS = 40


def room(path):
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(path):
    """Every module of this distribution and of the laboratory that a file imports, also inside its functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "tiltmeter" else [node.module]
            )
        else:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if (name or "").split(".")[0] in ("tiltmeter", "tiltmeter_lab"))


def imported_rooms(path):
    """Every room that a file imports."""
    for name in imported(path):
        house, *rest = name.split(".")
        assert house == "tiltmeter", f"{path} imports {name}: nothing here needs the laboratory"
        yield from rest[:1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_down(path):
    own = room(path)
    if own in WINGS:
        assert not (set(imported_rooms(path)) & set(WINGS)) - WINGS[own], f"{path} imports another wing"
        return
    assert own in LEVEL, f"{own} has no layer: add it to the list"
    for other in imported_rooms(path):
        assert other not in WINGS, f"{path} belongs to the core, which must not import {other}"
        if other != own:
            assert other in LEVEL, f"{path} imports {other}, which is no room of the house"
            assert LEVEL[other] > LEVEL[own], f"{own} must not import {other}"


@pytest.mark.parametrize("path", [path for path in FILES if room(path) not in WINGS], ids=lambda p: p.stem)
def test_no_file_of_the_core_imports_very_many_of_ours(path):
    assert len(set(imported(path))) <= MOST_IMPORTS


def test_the_journeys_of_an_engineer_need_no_other_house(tmp_path):
    """Eighteen journeys, in a process in which numba and the three other houses cannot be imported."""
    script = SOURCE.parents[1] / "tests" / "journeys.py"
    refused = ("numba", "tiltmeter.theory", "tiltmeter.explorer", "tiltmeter_lab")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, str(script), str(tmp_path), "--refuse", *refused]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("done") == 18


@pytest.mark.parametrize("part", ["benchmarks", "docs/notebooks", "tests"])
def test_nothing_but_the_laboratory_needs_the_laboratory(part):
    """`pytest.importorskip` in a test is not an import; the tools of the documentation show all houses."""
    for path in (SOURCE.parents[1] / part).rglob("*.py"):
        assert not [name for name in imported(path) if name.split(".")[0] == "tiltmeter_lab"], path


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
    drawn = "".join(part.partition("```")[0] for part in text.split("```text\n")[1:3])
    heads = (re.match(r"[a-z_, ]+?(?:  |$)", line) for line in drawn.splitlines() if not line.startswith(" "))
    named = {name for head in heads if head for name in head[0].strip().split(", ")}
    assert named | {"results"} == {*LEVEL, *WINGS}
