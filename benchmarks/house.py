"""The size of the house, counted: files, lines of code, scraps, imports, long functions, public names.

`python benchmarks/house.py [FOLDER]` prints one row for each room and the totals of a package (default: the library).
A line of code is neither blank, nor a comment, nor part of a docstring. A scrap is a file of under 60 lines that one
other file imports.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "src" / "tiltmeter"
SCRAP, LONG, MANY = 60, 60, 8


def code_lines(path: Path) -> int:
    """Lines that hold code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                docs.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines: set[int] = set()
    quiet = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in (*quiet, tokenize.ENCODING):
                lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


def modules_of(package: Path) -> dict[str, Path]:
    """Every module of a package by its full name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def importers(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Which modules import each; a name in a string that is a module's address counts too (catalogues)."""
    root = next(iter(modules)).split(".")[0]
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == root:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    found[full if full in modules else str(node.module)].add(name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                address = node.value.partition(":")[0]
                for full in (address, f"{root}.{address}"):
                    if "." in address and full in modules:
                        found[full].add(name)
    return found


def main(package: Path) -> None:
    modules = modules_of(package)
    asked = importers(modules)
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    lines = imports = long = long_code = wide = wide_loops = 0
    scraps = []
    for name, path in modules.items():
        text = path.read_text(encoding="utf-8")
        count = len(text.splitlines())
        room = path.relative_to(package).parts[0]
        code = code_lines(path)
        rooms[room if room.endswith(".py") is False else "loose modules"][0] += 1
        rooms[room if room.endswith(".py") is False else "loose modules"][1] += code
        lines += count
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports += (node.end_lineno or node.lineno) - node.lineno + 1
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                described = len((ast.get_docstring(node, clean=False) or "").splitlines())
                long, long_code = long + (length > LONG), long_code + (length - described > LONG)
                arguments = node.args
                many = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs) > MANY
                wide, wide_loops = wide + many, wide_loops + (many and path.name.startswith("compiled"))
        if count < SCRAP and path.name != "__init__.py" and len(asked[name]) == 1:
            scraps.append(f"{name} <- {next(iter(asked[name]))}")
    for room, (files, code) in sorted(rooms.items(), key=lambda pair: -pair[1][1]):
        print(f"{room:<18} {files:>4} files {code:>7,} lines of code")
    total = sum(code for _, code in rooms.values())
    print(f"{'total':<18} {len(modules):>4} files {total:>7,} lines of code, {lines:,} lines in all")
    print(f"imports {imports / lines:.1%} of lines")
    print(f"functions over {LONG} lines {long}, without their docstrings {long_code}")
    print(f"functions over {MANY} parameters {wide}, of which loops for numba {wide_loops}")
    print(f"files under {SCRAP} lines that one other file imports: {len(scraps)}")
    for scrap in scraps if "--scraps" in sys.argv else []:
        print(f"  {scrap}")


if __name__ == "__main__":
    folders = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    main(folders[0] if folders else LIBRARY)
