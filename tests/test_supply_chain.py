"""Where the packages come from: every pinned version has its checksums, and everything that is installed is pinned."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "requirements").glob("*.txt"))


def canonical(name):
    return re.sub(r"[-_.]+", "-", name.split("[")[0].strip()).lower()


def pins(path):
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found |= pins(path.parent / line[3:].strip())
        elif "==" in line and not line.startswith("#"):
            name, version = line.split("#")[0].split(";")[0].split("==")
            found[canonical(name)] = version.strip()
    return found


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_pinned_version_has_checksums(source):
    text = source.with_suffix(".lock").read_text(encoding="utf-8")
    locked = {}
    for part in re.split(r"\n(?=\S)", text):
        name, _, rest = part.partition("==")
        if rest:
            locked[canonical(name)] = rest.split()[0]
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", rest), part[:60]
    wanted = pins(source)
    if source.stem != "torch":
        wanted.pop("torch", None)  # its builds for CPU and CUDA differ
    assert locked == wanted


def test_every_package_of_every_extra_is_pinned_and_so_audited():
    pinned = set().union(*(pins(source) for source in SOURCES))
    for project in (ROOT / "pyproject.toml", ROOT / "lab" / "pyproject.toml"):
        described = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        extras = described.get("optional-dependencies", {}).values()
        asked = [*described["dependencies"], *(one for extra in extras for one in extra)]
        names = {canonical(re.split(r"[<>=;\[ ]", one)[0]) for one in asked}
        assert names - pinned <= {"tiltmeter"}


def test_make_and_the_public_workflow_install_with_checksums():
    """But for torch in the environment of `make`, which is installed by version (SECURITY.md)."""
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    loose = [line for line in re.findall(r"pip install (.+)", made) if "--require-hashes" not in line]
    assert all("--no-deps --editable" in line or re.search(r"requirements/(run|dev)\.txt", line) for line in loose), (
        loose
    )
    for line in re.findall(r"pip install (.+)", (ROOT / ".github/workflows/check.yml").read_text(encoding="utf-8")):
        assert "--require-hashes" in line or "--no-deps --editable" in line


def test_the_audit_covers_every_lock():
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "for lock in requirements/*.lock" in made
    assert "torch==" in (ROOT / "requirements/torch.lock").read_text(encoding="utf-8")
