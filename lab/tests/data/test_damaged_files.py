"""Damaged files of data: one sentence, never the end of the interpreter, never more memory than a file may take."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.data import unpacked

#: Changes a few bytes of a file again and again and reads it, in a process of its own: a crash ends only that.
PROGRAM = """
import pathlib, random, sys, warnings
import tiltmeter as tm
warnings.simplefilter("ignore")
path, target, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
whole = path.read_bytes()
chance = random.Random(0)
refused = 0
for number in range(count):
    data = bytearray(whole)
    for _ in range(chance.choice((1, 1, 3, 20))):
        data[chance.randrange(len(data))] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
    path.write_bytes(data[: chance.randrange(len(data))] if number % 10 == 9 else data)
    try:
        if target.endswith("npz"):
            tm.GroupedData.from_npz(target)
        else:
            tm.GroupedData.from_frame(target, label="label", group="group")
    except (ValueError, TypeError, KeyError, FileNotFoundError) as error:
        refused += 1
        assert len(str(error)) < 5000
print(refused)
"""


def frame():
    import pandas as pd

    rng = np.random.default_rng(0)
    table = {f"x{k}": rng.normal(size=40) for k in range(3)}
    return pd.DataFrame({**table, "word": rng.choice(["some", "words", "é"], 40), "label": rng.integers(0, 2, 40),
                         "group": rng.choice(["a", "b"], 40)})  # fmt: skip


def write(kind, folder):
    """A whole file of this kind: the file to damage, and what to read."""
    if kind == "npz":
        np.savez(folder / "t.npz", x=np.ones((40, 3)), y=np.arange(40) % 2, group=np.arange(40) % 2)
        return folder / "t.npz", folder / "t.npz"
    if kind == "datasets":
        datasets = pytest.importorskip("datasets")
        datasets.Dataset.from_pandas(frame()).save_to_disk(folder / "saved")
        return next((folder / "saved").glob("*.arrow")), folder / "saved"
    path = folder / f"t.{kind}"
    pytest.importorskip("pyarrow")
    write_it = {"csv": frame().to_csv, "parquet": frame().to_parquet, "feather": frame().to_feather}[kind]
    write_it(path)
    return path, path


@pytest.mark.parametrize("kind", ["feather", "datasets", "npz", "parquet", "csv"])
@pytest.mark.parametrize("count", [150, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_damaged_file_ends_the_interpreter(tmp_path, kind, count):
    path, target = write(kind, tmp_path)
    command = [sys.executable, "-c", PROGRAM, str(path), str(target), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-2000:]}"
    assert int(done.stdout) > count / 20


def test_the_whole_files_are_read(tmp_path):
    for kind in ("feather", "parquet", "csv"):
        _, target = write(kind, tmp_path)
        assert len(tm.GroupedData.from_frame(target, label="label", group="group")) == 40


def test_an_archive_that_would_not_fit_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacked, "most_bytes", lambda: 2**20)
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((40, 10_000)), y=np.arange(40) % 2, group=np.arange(40) % 2)
    assert (tmp_path / "bomb.npz").stat().st_size < 20_000
    with pytest.raises(ValueError, match=r"bomb.npz would take .* GiB when unpacked, more than"):
        tm.GroupedData.from_npz(tmp_path / "bomb.npz")


def test_an_archive_with_a_password_is_refused_in_a_sentence(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.zeros((4, 1)), y=np.arange(4) % 2, group=np.arange(4) % 2)
    with zipfile.ZipFile(tmp_path / "t.npz") as archive:
        offsets = [archive.getinfo(name).header_offset for name in archive.namelist()]
    data = bytearray((tmp_path / "t.npz").read_bytes())
    for offset in offsets:
        data[offset + 6] |= 1
    start = 0
    while (start := data.find(b"PK\x01\x02", start)) >= 0:
        data[start + 8] |= 1
        start += 4
    (tmp_path / "t.npz").write_bytes(data)
    with pytest.raises(ValueError, match=r"should be a whole .npz file"):
        tm.GroupedData.from_npz(tmp_path / "t.npz")
