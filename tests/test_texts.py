"""Every text runs: doctests of all modules, and the code blocks of README, CONTRIBUTING and docs."""

import doctest
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import pytest

import tiltmeter
from test_outputs import OUTPUTS
from tiltmeter.cli import main

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(tiltmeter.__path__, "tiltmeter.")
    if not module.name.endswith("__main__")
)
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *DOCS.glob("*.md"),
        *(page for part in ("start", "tutorials", "howto", "lab") for page in (DOCS / part).glob("*.md")),
    ]
)
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert results.failed == 0


@pytest.fixture(autouse=True)
def one_thread_in_commands(monkeypatch):
    """Networks as small as those of the texts are much slower on several threads of a busy machine."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_there_are_doctests():
    finder = doctest.DocTestFinder()
    examples = sum(len(t.examples) for name in MODULES for t in finder.find(importlib.import_module(name)))
    assert examples > 60


def blocks(page):
    return [(match[1] + match[2], match[3]) for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


def name_of(page):
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


def quick_blocks(page):
    return OUTPUTS.quick_blocks(name_of(page), page.read_text(encoding="utf-8"))


def runs_whole(page):
    return quick_blocks(page) == sum(language in OUTPUTS.RUN for language, _ in blocks(page))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_quick_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    """All blocks of a page up to the first that takes 2 s; those from there on are as they were when all were run."""
    run_blocks(page, quick_blocks(page), tmp_path, monkeypatch, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if not runs_whole(page)], ids=name_of)
def test_slow_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    run_blocks(page, len(blocks(page)), tmp_path, monkeypatch, capsys)


def run_blocks(page, count, tmp_path, monkeypatch, capsys):
    """Python blocks share one namespace per page; `$ tiltmeter` commands succeed and print what the page shows.

    A block `text printed` shows what the Python block before it printed, with lines broken where they are too long. Of
    blocks after the first `count` it is compared with the stored output.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    namespace = {"__name__": page.stem}
    printed = ""
    hashes = iter(OUTPUTS.hashes(page.read_text(encoding="utf-8")))
    for language, text in blocks(page):
        count -= language in OUTPUTS.RUN
        key = next(hashes) if language == "python" else None
        if language in OUTPUTS.RUN and count < 0:
            printed = OUTPUTS.stored()[name_of(page)][key] if key else printed
        elif language == "python":
            capsys.readouterr()
            exec(compile(text, f"{page.name}", "exec"), namespace)
            printed = capsys.readouterr().out
        elif language == "text printed":
            check_shown(text if count >= 0 else OUTPUTS.masked(text), printed, page.name)
        elif language == "toml":
            name = re.match(r"# ([\w.-]+)\n", text)
            assert name, "a TOML block starts with a comment that names its file"
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif language == "console":
            run_console(text, capsys)
        elif language == "sh":
            check_make_targets(text)
        else:
            assert language in ("text", "math", "bibtex"), f"unknown kind of block {language!r}"


def run_console(text, capsys):
    for command, shown in re.findall(r"^\$ tiltmeter ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", text, re.MULTILINE):
        words = shlex.split(command, comments=True)
        exit_code = re.search(r"# exit code (\d)$", command)
        capsys.readouterr()
        assert main(words) == (int(exit_code[1]) if exit_code else 0), command
        check_shown(shown, capsys.readouterr().out, f"tiltmeter {command}")


def check_shown(shown, printed, source):
    """Every line is printed, in order, if lines that the page breaks are joined; "..." stands for lines left out."""
    rest = " ".join(printed.split())
    for line in shown.splitlines():
        words = " ".join(line.split())
        if words and words != "..." and "Page:" not in words and "Pictures:" not in words:
            assert words in rest, f"`{source}` no longer prints: {line}"
            rest = rest.split(words, 1)[1]


def check_make_targets(text):
    """Blocks for the shell may hold only `make` targets that exist, and `pip install` lines."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line in filter(None, (line.split("#")[0].strip() for line in text.splitlines())):
        words = line.split()
        assert (words[0] == "make" and set(words[1:]) <= targets) or words[:2] == ["pip", "install"], line
