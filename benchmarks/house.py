"""The size of the houses, counted: files, lines of code, scraps, imports, long functions.

`python benchmarks/house.py [FOLDER]` prints a row for each house of the checkout (core, theory, explorer, laboratory),
then one for each room of the core and its totals; of a FOLDER, the rooms and totals of that package. A line of code is
neither blank, nor a comment, nor part of a docstring. A scrap is a file of under 60 lines that one other file imports.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY, LABORATORY = ROOT / "src" / "tiltmeter", ROOT / "lab" / "src" / "tiltmeter_lab"
#: Folders of the library that are houses of their own.
WINGS = ("theory", "explorer")
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


def files_of_houses() -> dict[str, list[Path]]:
    """The Python files of each house."""
    wings = {wing: sorted((LIBRARY / wing).rglob("*.py")) for wing in WINGS}
    of_wings = {path for paths in wings.values() for path in paths}
    core = [path for path in sorted(LIBRARY.rglob("*.py")) if path not in of_wings]
    return {"core": core, **wings, "laboratory": sorted(LABORATORY.rglob("*.py"))}


def print_houses() -> None:
    total = 0
    for house, paths in files_of_houses().items():
        code = sum(map(code_lines, paths))
        total += code
        print(f"{house:<18} {len(paths):>4} files {code:>7,} lines of code")
    print(f"{'all houses':<18} {'':>10} {total:>7,} lines of code\n")


def imports_of_ours(path: Path) -> int:
    """How many files of this checkout a file imports, also inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("tiltmeter", "tiltmeter_lab"):
            names.add(node.module)
    return len(names)


def print_package(modules: dict[str, Path], package: Path) -> None:
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
    ours = sorted(((imports_of_ours(path), name) for name, path in modules.items()), reverse=True)
    print(f"{'total':<18} {len(modules):>4} files {total:>7,} lines of code, {lines:,} lines in all")
    print(f"imports {imports / lines:.1%} of lines")
    print(
        f"imports of ours per file: mean {sum(n for n, _ in ours) / len(ours):.1f}, most {ours[0][0]} in {ours[0][1]}"
    )
    print(f"functions over {LONG} lines {long}, without their docstrings {long_code}")
    print(f"functions over {MANY} parameters {wide}, of which loops for numba {wide_loops}")
    print(f"files under {SCRAP} lines that one other file imports: {len(scraps)}")
    for scrap in scraps if "--scraps" in sys.argv else []:
        print(f"  {scrap}")


if __name__ == "__main__":
    folders = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    if folders:
        print_package(modules_of(folders[0]), folders[0])
    else:
        print_houses()
        core = set(files_of_houses()["core"])
        print_package({name: path for name, path in modules_of(LIBRARY).items() if path in core}, LIBRARY)
