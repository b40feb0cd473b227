"""Bombs: files of a few megabytes that ask for more memory than is allowed, one by one."""

import zipfile

import numpy as np
import pandas as pd
import pytest

import tiltmeter as tm
from tiltmeter.data import unpacked
from tiltmeter.predictions.checkpoints import Checkpoint

LIMIT = 2**26


@pytest.fixture(autouse=True)
def small_memory(monkeypatch):
    monkeypatch.setattr(unpacked, "most_bytes", lambda: LIMIT)


def test_a_quarter_of_the_memory_is_the_limit(monkeypatch):
    monkeypatch.undo()
    assert 2**27 < unpacked.most_bytes() < 2**44


def npz(folder):
    path = folder / "bomb.npz"
    arrays = {"x": np.zeros((2**20, 9)), "y": np.zeros(2**20), "group": np.zeros(2**20)}
    np.savez_compressed(path, **arrays)
    return lambda: tm.GroupedData.from_npz(path)


def numbers_in_parquet(folder):
    path = folder / "bomb.parquet"
    pd.DataFrame({f"c{k}": np.zeros(2**20) for k in range(9)}).to_parquet(path)
    return lambda: tm.GroupedData.from_frame(path, label="c0", group="c1")


def texts_in_parquet(folder):
    path = folder / "bomb.parquet"
    pd.DataFrame({"y": np.zeros(2**14), "g": ["a" * 2**14] * 2**14}).to_parquet(path)
    assert path.stat().st_size < 2**20
    return lambda: tm.GroupedData.from_frame(path, label="y", group="g")


def feather(folder):
    path = folder / "bomb.feather"
    pd.DataFrame({f"c{k}": np.zeros(2**20) for k in range(9)}).to_feather(path, compression="zstd")
    return lambda: tm.GroupedData.from_frame(path, label="c0", group="c1")


def csv(folder):
    path = folder / "bomb.csv"
    path.write_bytes(b"a,b\n" + b"0,0\n" * 2**23)
    return lambda: tm.GroupedData.from_frame(path, label="a", group="b")


@pytest.mark.parametrize(
    "make", [npz, numbers_in_parquet, texts_in_parquet, feather, csv], ids=lambda make: make.__name__
)
def test_what_would_unpack_to_more_is_refused(tmp_path, make):
    with pytest.raises(
        ValueError, match=r"would take \d+\.\d GiB when unpacked, more than 0\.1 GiB, a quarter of the mem"
    ):
        make(tmp_path)()


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_many_columns_are_refused_at_once(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(unpacked, "MOST_COLUMNS", 100)
    path = tmp_path / f"wide.{ending}"
    frame = pd.DataFrame(np.zeros((60, 101)), columns=[f"c{k}" for k in range(101)])
    {
        "csv": lambda: frame.to_csv(path, index=False),
        "parquet": lambda: frame.to_parquet(path),
        "feather": lambda: frame.to_feather(path),
    }[ending]()
    with pytest.raises(ValueError, match=r"should have at most 100 columns\. Found 101\."):
        tm.GroupedData.from_frame(path, label="c0", group="c1")


def test_a_header_of_three_hundred_thousand_columns_takes_no_time(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{k}" for k in range(300_000)) + "\n")
    with pytest.raises(ValueError, match=r"should have at most 20,000 columns\. Found 300,000\."):
        tm.GroupedData.from_frame(path, label="c0", group="c1")


def test_packed_weights_are_refused(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "step_1.pt"
    torch.save(torch.nn.Linear(2**10, 2**10).state_dict(), tmp_path / "plain.pt")
    with zipfile.ZipFile(tmp_path / "plain.pt") as plain, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in plain.namelist():
            packed.writestr(name, plain.read(name))
    held_out = tm.GroupedData(np.zeros((60, 2**10), "float32"), [0, 1] * 30, ["a"] * 30 + ["b"] * 30)
    with pytest.raises(ValueError, match="its parts are compressed"):
        tm.predictions.checkpoints([Checkpoint(1, path)], lambda: torch.nn.Linear(2**10, 1), held_out)


def test_a_flipped_bit_of_weights_is_refused(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "step_1.pt"
    torch.save({"weight": torch.arange(50.0)[None], "bias": torch.zeros(1)}, path)
    whole = path.read_bytes()
    place = whole.index(np.float32(17.0).tobytes())
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    held_out = tm.GroupedData(np.zeros((60, 50), "float32"), [0, 1] * 30, ["a"] * 30 + ["b"] * 30)
    with pytest.raises(ValueError, match="its checksum does not match"):
        tm.predictions.checkpoints([Checkpoint(1, path)], lambda: torch.nn.Linear(50, 1), held_out)


@pytest.mark.parametrize("part", ["x", "y", "group", "weights"])
def test_masked_arrays_are_refused(part):
    given = {"x": np.zeros((60, 2)), "y": np.arange(60) % 2, "group": np.arange(60) // 30, "weights": np.ones(60)}
    given[part] = np.ma.masked_array(given[part], mask=given[part] == given[part].max())
    with pytest.raises(
        TypeError, match=rf"`{part}` should be a plain array\. Found a masked array with \d+ masked values"
    ):
        tm.GroupedData(**given)
