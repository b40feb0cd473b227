"""Every public result that has a text of its own also has an HTML representation."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/tiltmeter"
ROOMS = ("advice", "discover", "fairness", "leaders", "forecast", "modules", "theory", "data", "record")
#: They write or describe places and processes; nobody gets one as a result.
NO_RESULTS = {"Disk", "Lock", "Memory", "Presence", "Process"}


def methods(kind):
    return {part.name for part in kind.body if isinstance(part, ast.FunctionDef)}


def test_a_text_comes_with_html():
    found, without = 0, []
    for room in ROOMS:
        for file in sorted((SOURCE / room).rglob("*.py")):
            for kind in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(kind, ast.ClassDef) and "__str__" in methods(kind) and kind.name not in NO_RESULTS:
                    found += 1
                    bases = {ast.unparse(base) for base in kind.bases}
                    if "_repr_html_" not in methods(kind) and "NotebookText" not in bases:
                        without.append(kind.name)
    assert found > 25
    assert without == []
