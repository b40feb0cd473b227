import errno
import os
import pickle

import numpy as np
import pytest

from tiltmeter.record.directory.atomic_files import explained, read_array, write_array, write_atomically


def test_a_file_is_never_half_written(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["run.json"]


@pytest.mark.parametrize(
    "values", [np.arange(6.0).reshape(2, 3).T, np.array([True]), np.array(3, "int8"), np.zeros((0, 2))]
)
def test_arrays_come_back(tmp_path, values):
    write_array(tmp_path / "a.npy", values)
    back = read_array(tmp_path / "a.npy", str(values.dtype), values.shape)
    np.testing.assert_array_equal(back, values)
    assert back.dtype == values.dtype


def damage(path, how):
    good = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "truncated":
        path.write_bytes(good[:-100])
    elif how == "header":
        path.write_bytes(good[:40])
    elif how == "pickle":
        path.write_bytes(pickle.dumps(np.arange(3)))
    elif how == "objects":
        np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    elif how == "zip":
        with path.open("wb") as file:
            np.savez(file, a=np.arange(3))
    elif how == "shape":
        np.save(path, np.zeros(3))
    elif how == "dtype":
        np.save(path, np.zeros(2000, dtype="float32"))
    elif how == "directory":
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize(
    ("how", "fact"),
    [
        ("missing", "arrays/a.npy is missing"),
        ("empty", "arrays/a.npy cannot be read: it does not begin like a NumPy file"),
        ("truncated", "arrays/a.npy cannot be read: "),
        ("header", "arrays/a.npy cannot be read: "),
        ("pickle", "arrays/a.npy cannot be read: it does not begin like a NumPy file"),
        ("objects", "arrays/a.npy cannot be read: it holds objects, and nothing is ever unpickled"),
        ("zip", "arrays/a.npy cannot be read: it does not begin like a NumPy file"),
        ("shape", "arrays/a.npy holds float64 of shape (3,) where float64 of shape (2000,) is expected"),
        ("dtype", "arrays/a.npy holds float32 of shape (2000,) where float64 of shape (2000,) is expected"),
        ("directory", "arrays/a.npy cannot be read: "),
    ],
)
def test_damaged_arrays_are_told(tmp_path, how, fact):
    (tmp_path / "arrays").mkdir()
    path = tmp_path / "arrays" / "a.npy"
    write_array(path, np.zeros(2000))
    damage(path, how)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_array(path, "float64", (2000,))
    assert str(caught.value).startswith(fact)


def test_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    np.save(tmp_path / "a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="nothing is ever unpickled"):
        read_array(tmp_path / "a.npy", "object", (1,))
    assert not (tmp_path / "exploded").exists()


def test_an_explained_error_keeps_kind_and_number():
    error = explained(OSError(errno.ENOSPC, "No space left on device", "x"), "It failed: ", " Sorry.")
    assert str(error) == "It failed: No space left on device. Sorry."
    assert error.errno == errno.ENOSPC
    assert isinstance(explained(PermissionError(errno.EACCES, "no"), ""), PermissionError)
