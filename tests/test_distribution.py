"""Wheel and sdist: the same bytes from two checkouts, complete, and of use without PyTorch."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AGAIN = "run `python requirements/lock.py run.txt dev.txt`"
PARTS = ("src", "tests", "docs", "benchmarks", "requirements", "lab")


def run(*command, cwd, **env):
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    found = []
    for place in ("one", "another"):
        folder = tmp_path_factory.mktemp(place) / "tiltmeter"
        skipped = shutil.ignore_patterns("__pycache__", "_build", "*.pyc", ".*")
        for part in PARTS:
            shutil.copytree(ROOT / part, folder / part, ignore=skipped)
        for file in [
            *ROOT.glob("*.md"),
            *(ROOT / name for name in ("LICENSE", "CITATION.cff", "Makefile", "pyproject.toml", "conftest.py")),
        ]:
            shutil.copy(file, folder)
        (folder / "README.md").touch()  # another time of change
        for project in (folder, folder / "lab"):
            run("-m", "hatchling", "build", "-d", str(folder / "dist"), cwd=project, SOURCE_DATE_EPOCH="1767225600")
        found.append(folder / "dist")
    return found


@pytest.mark.slow
def test_two_builds_are_equal(built):
    sums = [{path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} for folder in built]
    assert len(sums[0]) == 4
    assert sums[0] == sums[1]


@pytest.mark.slow
def test_the_sdist_passes_its_own_smoke_tests(built, tmp_path):
    (archive,) = built[0].glob("tiltmeter-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    rooms = (
        "tests/contracts/test_layers.py",
        "tests/test_public_names.py",
        "tests/problem",
        "tests/record/test_origin.py",
    )
    out = run("-m", "pytest", "-q", "-p", "no:cacheprovider", *rooms, cwd=folder, PYTHONPATH=str(folder / "src"))
    assert " passed" in out


SMOKE = """
import sys
sys.modules["torch"] = None  # as on a machine without it
import numpy as np, tiltmeter as tm
assert tm.__file__.startswith(sys.argv[1]), tm.__file__
times = np.geomspace(0.1, 50, 20)
problem, sgd = tm.teacher_mixture(rho=0.8, variance=(0.5, 1.5), overlap=0.5), tm.SGD(lr=0.1)
theory = tm.predict(problem, sgd, times)
print(tm.leaders(theory))
print(tm.simulate(problem, sgd, times, d=100, seeds=2))
tm.report([theory], sys.argv[1] + "/page.html")
for name in ("train", "Probe", "forecast", "ensemble", "measure", "Steering"):
    try:
        getattr(tm, name)
    except ImportError as error:
        assert str(error) == f"`{name}` needs PyTorch: pip install 'tiltmeter[torch]'", error
    else:
        raise AssertionError(name)
"""


@pytest.mark.slow
def test_the_wheel_gives_theory_and_simulation_without_torch(built, tmp_path):
    (wheel,) = built[0].glob("tiltmeter-*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    out = run("-c", SMOKE, str(tmp_path), cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert "has the lower loss until" in out


WITH_LAB = """
import sys
import tiltmeter as tm
from tiltmeter.cli import main
assert __import__("tiltmeter").__file__.startswith(sys.argv[1])
sys.exit(main(["reproduce", "--list", "three-phases"]))
"""
WITHOUT_LAB = """
import sys
from importlib import metadata
from tiltmeter.cli import main
assert main(["reproduce", "three-phases", "--to", "runs"]) == 2
from tiltmeter.explorer.demo_runs import demo_runs
from pathlib import Path
sys.modules["torch"] = None
print(demo_runs(Path("runs")))
"""


@pytest.mark.slow
def test_the_wheel_of_the_laboratory_brings_its_verb(built, tmp_path):
    for wheel in built[0].glob("*.whl"):
        with zipfile.ZipFile(wheel) as file:
            file.extractall(tmp_path)
    out = run("-c", WITH_LAB, str(tmp_path), cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert "three-phases" in out


@pytest.mark.slow
def test_the_wheel_of_the_library_is_enough_for_everything_else(built, tmp_path):
    """In a fresh environment that sees the packages of this one, but not the laboratory."""
    (wheel,) = built[0].glob("tiltmeter-*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path / "site")
    hide = (
        "import importlib.metadata as m; real = m.entry_points\n"
        "m.entry_points = lambda **k: () if k.get('group') == 'tiltmeter' else real(**k)\n"
        "import sys; sys.modules['tiltmeter_lab'] = None\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", hide + WITHOUT_LAB],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert "pip install tiltmeter-lab" in done.stderr
    assert "theory-three-phases" in done.stdout


@pytest.mark.parametrize("name", ["run", "dev"])
def test_checksums_are_of_the_pinned_versions(name):
    locked = locks(name)
    wanted = pins(f"{name}.txt")
    assert {pin: version for pin, version in locked.items() if wanted.get(pin) != version} == {}, AGAIN


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "dev"])
def test_every_pin_but_torch_has_checksums(name):
    assert set(pins(f"{name}.txt")) - set(locks(name)) == {"torch"}, AGAIN


def locks(name):
    text = (ROOT / f"requirements/{name}.lock").read_text(encoding="utf-8")
    found = dict(re.findall(r"^([\w.-]+)==(\S+) \\$", text, re.MULTILINE))
    assert len(found) == len(re.findall(r"^[\w.-]+==", text, re.MULTILINE)), "every entry has a checksum"
    return found


def pins(name):
    found = {}
    for line in (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found |= pins(line[3:].strip())
        elif "==" in line and not line.startswith("#"):
            pin, version = line.strip().split("==")
            found[pin] = version
    return found
