"""Kernels in files: the same to the bit as in memory, resumed after a death, refused for another network."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import tiltmeter as tm
from networks import small_cnn
from tiltmeter.modules.networks import mlp
from tiltmeter.modules.tangent import kernel_blocks, stored_kernels
from tiltmeter.modules.tangent.kernel import kernels


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of eight points and strips of about sixteen, in memory and in files."""
    for module in (kernel_blocks, stored_kernels):
        monkeypatch.setattr(module, "block_size", lambda plan, chunk=256: 8)
    monkeypatch.setattr(stored_kernels, "STRIP", 16 * 60)


def network(outputs=1, seed=0):
    torch.manual_seed(seed)
    return mlp(6, (10,), outputs)


def points(count=43, others=13):
    stream = torch.Generator().manual_seed(1)
    return torch.randn(count, 6, generator=stream), torch.randn(others, 6, generator=stream)


def stored(model, x, held_out, folder, outputs="full", executor=None):
    found, _ = stored_kernels.stored_kernels(
        model, x, held_out, outputs=outputs, read=None, to=folder, executor=executor
    )
    return found


@pytest.mark.parametrize(("count", "outputs"), [(1, "full"), (3, "full"), (3, "trace")])
def test_files_hold_the_kernels_of_memory_to_the_bit(small_blocks, tmp_path, count, outputs):
    model, (x, held_out) = network(count), points()
    kernel, cross = stored(model, x, held_out, tmp_path, outputs)
    same, other = kernels(model, x, held_out, outputs=outputs)
    assert kernel.tobytes() == same.tobytes()
    assert cross.tobytes() == other.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cross.npy", "kernel.npy", "kernels.json"]
    with ThreadPoolExecutor(2) as pool:
        again = stored(model, x, held_out, tmp_path / "pool", outputs, pool)
    assert again[0].tobytes() == same.tobytes()


def test_convolutions_too_and_with_ordinary_blocks(tmp_path):
    torch.manual_seed(0)
    model = small_cnn(1, 3)
    x, held_out = torch.randn(20, 1, 8, 8), torch.randn(5, 1, 8, 8)
    found = stored(model, x, held_out, tmp_path)
    for mine, same in zip(found, kernels(model, x, held_out), strict=True):
        assert mine.tobytes() == same.tobytes()


def test_what_is_there_is_not_computed_again(small_blocks, tmp_path, monkeypatch):
    model, (x, held_out) = network(), points()
    begun = []
    strip = stored_kernels.strip

    def dies_at_the_third(plan, x, other, first, last, size):
        begun.append(first)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return strip(plan, x, other, first, last, size)

    monkeypatch.setattr(stored_kernels, "strip", dies_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        stored(model, x, held_out, tmp_path)
    (tmp_path / "rows-000000032.npy.aside").write_bytes(b"torn")  # what a death in the middle of writing leaves
    kernel, _ = stored(model, x, held_out, tmp_path)
    assert len(begun) == len(set(begun)) + 1, "only the strip that was interrupted is begun again"
    assert kernel.tobytes() == kernels(model, x, held_out)[0].tobytes()
    begun.clear()
    stored(model, x, held_out, tmp_path)
    assert not begun


def test_what_was_changed_since_is_not_used(small_blocks, tmp_path, monkeypatch):
    model, (x, held_out) = network(), points()
    join = stored_kernels._join
    monkeypatch.setattr(stored_kernels, "_join", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        stored(model, x, held_out, tmp_path)
    monkeypatch.setattr(stored_kernels, "_join", join)
    names = [path.name for path in tmp_path.iterdir() if path.name.startswith(("rows", "held-out"))]
    assert len(names) == 6
    refusal = "cannot be read: its checksum does not match: it was changed after it was written"
    for name in names:
        with flipped(tmp_path / name), pytest.raises(ValueError, match=f"{name} {refusal}"):
            stored(model, x, held_out, tmp_path)
    stored(model, x, held_out, tmp_path)
    for name in ("kernel.npy", "cross.npy"):
        with flipped(tmp_path / name), pytest.raises(ValueError, match=f"{name} {refusal}"):
            stored(model, x, held_out, tmp_path)
    with flipped(tmp_path / "kernels.json"), pytest.raises(ValueError, match=r"kernels.json should be what `tangent`"):
        stored(model, x, held_out, tmp_path)
    assert stored(model, x, held_out, tmp_path)[0].tobytes() == kernels(model, x, held_out)[0].tobytes()


@contextmanager
def flipped(path):
    """The file with one bit of its end changed, for a while."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    try:
        yield
    finally:
        path.write_bytes(whole)


def test_another_network_or_a_folder_with_other_files_is_refused(tmp_path):
    model, (x, held_out) = network(), points(10, 4)
    stored(model, x, held_out, tmp_path / "one")
    with pytest.raises(ValueError, match=r"hold kernels of this network and these points. Found those of another"):
        stored(network(seed=1), x, held_out, tmp_path / "one")
    with pytest.raises(ValueError, match=r"Found those of another"):
        stored(model, 2 * x, held_out, tmp_path / "one")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("all of it")
    with pytest.raises(ValueError, match=r"`to` should be a new folder, or one with kernels. Found other files"):
        stored(model, x, held_out, tmp_path / "other")
    (tmp_path / "one" / "kernels.json").write_text("[]")
    with pytest.raises(ValueError, match=r"should be what `tangent` wrote. Found something else"):
        stored(model, x, held_out, tmp_path / "one")


def test_a_forecast_reads_the_files_and_is_the_same(small_blocks, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 6)).astype(np.float32)
    data = tm.GroupedData(x, np.sign(x[:, 0]), rng.choice(["a", "b"], 160, p=[0.7, 0.3]))
    train, held_out = data.split(0.4, seed=0)
    recipe = tm.Recipe(lr=0.05, steps=40)
    one = tm.tangent(network(), train, held_out, sample=50)
    two = tm.tangent(network(), train, held_out, sample=50, to=tmp_path / "kernels")
    assert isinstance(np.asarray(two.kernel).base.base, np.memmap) or isinstance(two.kernel.base, np.memmap)
    for mine, other in zip(one.forecast(recipe).values(), two.forecast(recipe).values(), strict=True):
        assert mine.identical(other)
    with pytest.raises(ValueError, match=r"`executor` computes strips of the kernel, which go through files"):
        tm.tangent(network(), train, held_out, executor=ThreadPoolExecutor(1))


SCRIPT = """
import sys, time, torch
sys.path.insert(0, {folder!r})
import test_stored_kernels as t
from tiltmeter.modules.tangent import kernel_blocks
from tiltmeter.modules.tangent import stored_kernels
for module in (kernel_blocks, stored_kernels):
    module.block_size = lambda plan, chunk=256: 8
stored_kernels.STRIP = 16 * 60
strip = stored_kernels.strip
def slow(*settings):
    time.sleep(0.3)
    return strip(*settings)
stored_kernels.strip = slow
t.stored(t.network(), *t.points(), sys.argv[1])
"""


@pytest.mark.slow
def test_killed_processes_lose_at_most_the_strip_in_flight(small_blocks, tmp_path):
    script = SCRIPT.format(folder=str(Path(__file__).parent))
    target = tmp_path / "kernels"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    seen = set()
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", script, str(target)], env=environment)
        until = time.monotonic() + 90
        while time.monotonic() < until and len(list(target.glob("rows-*.npy"))) <= len(seen):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        now = {(path.name, path.stat().st_mtime_ns) for path in target.glob("rows-*.npy")}
        assert seen < now, "a finished strip was lost or computed again"
        seen = now
    model, (x, held_out) = network(), points()
    kernel, _ = stored(model, x, held_out, target)
    assert kernel.tobytes() == kernels(model, x, held_out)[0].tobytes()
