"""Compiled functions are never mixed up: each has a name of its own, and caches of several processes agree."""

import gc
import importlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import tiltmeter
from tiltmeter.theory import compiled

PACKAGE = Path(tiltmeter.__file__).parent


def functions():
    for path in PACKAGE.rglob("compiled_*.py"):
        importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    ours = [one for one in gc.get_objects() if issubclass(type(one), Dispatcher)]
    return [one.py_func for one in ours if one.py_func.__module__.startswith("tiltmeter.")]


def test_no_two_compiled_functions_share_a_name():
    names = Counter((function.__module__, function.__qualname__) for function in functions())
    assert len(names) > 60
    assert [name for name, count in names.items() if count > 1] == []


def test_every_name_says_the_version_of_the_sources():
    """A file of the cache holds copies of other functions, and does not notice when these change."""
    assert all(function.__qualname__.endswith(f"_{compiled.VERSION}") for function in functions())
    assert "<locals>" not in "".join(function.__qualname__ for function in functions())


def test_nothing_is_compiled_in_another_way():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "compiled.py":
            text = path.read_text(encoding="utf-8")
            assert "njit" not in text, path
            assert "import compiled" not in text or path.name.startswith("compiled_"), path


UNRELATED = """
from numba import njit
def make(n):
    def unrelated(x):
        return x + n
    return njit(unrelated)
for n in range({count}):
    make(n)(1.0)
"""
RATES = """
import tiltmeter as tm
print(tm.predict(*tm.theory.cases.centred_crossing(), curves=("error",))["error"].values.tobytes().hex())
"""
NORMAL = """
import numpy as np
from tiltmeter.theory.dynamics.fixed_set.training_curves import bivariate_normal_cdf
h, k, r = np.meshgrid(np.linspace(-8, 3, 23), np.linspace(-8, 3, 23), np.linspace(-0.99, 0.99, 23))
print(bivariate_normal_cdf(h, k, r).tobytes().hex())
"""


def run(program, cache):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_caches_of_two_processes_give_the_same_bits_in_both_orders(tmp_path):
    """One process compiled eleven other functions before, one a single one: their counters differ."""
    first, second, joined = tmp_path / "first", tmp_path / "second", tmp_path / "joined"
    (normal,) = run(UNRELATED.format(count=11) + NORMAL, first)
    (rates,) = run(UNRELATED.format(count=1) + RATES, second)
    shutil.copytree(second, joined)
    shutil.copytree(first, joined, dirs_exist_ok=True)
    assert run(RATES + NORMAL, joined) == [rates, normal]
    assert run(NORMAL + RATES, joined) == [normal, rates]
