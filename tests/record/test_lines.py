import errno
import json
import os

import pytest

from tiltmeter.record.directory.lines import Lines, read_lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "curves.jsonl"


@pytest.fixture
def lines(path):
    lines = Lines(path)
    yield lines
    lines.close()


def contents(path):
    return [entry for _, _, entry in read_lines(path)]


def test_a_line_is_with_the_system_when_append_returns(path, lines, monkeypatch):
    calls = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: calls.append(len(data)) or write(fd, data))
    lines.append({"a": 1})
    assert path.read_bytes() == b'{"a":1}\n'
    assert calls == [8]
    assert lines.end == 8


def test_lines_are_strict_json_on_one_line_each(path, lines):
    lines.append({"text": "a\nb\u2028é", "b": None})
    with pytest.raises(ValueError, match="Out of range float"):
        lines.append({"a": float("nan")})
    assert path.read_bytes().count(b"\n") == 1
    assert contents(path) == [{"text": "a\nb\u2028é", "b": None}]


@pytest.mark.parametrize("accepted", [0, 1, 5, 7])
def test_a_line_that_fails_halfway_is_cut_off(path, lines, monkeypatch, accepted):
    lines.append({"a": 1})
    write, left = os.write, [accepted]

    def full(fd, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = write(fd, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        lines.append({"b": 2})
    assert path.read_bytes() == b'{"a":1}\n'
    monkeypatch.setattr(os, "write", write)
    lines.append({"c": 3})
    assert contents(path) == [{"a": 1}, {"c": 3}]


def test_a_short_write_goes_on(path, lines, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    lines.append({"a": 1})
    assert contents(path) == [{"a": 1}]


def test_an_interrupt_leaves_no_half_line(path, lines, monkeypatch):
    write = os.write

    def interrupted(fd, data):
        write(fd, data[:4])
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lines.append({"a": 1})
    assert path.read_bytes() == b""


def test_what_could_not_be_cut_off_is_cut_off_later(path, lines, monkeypatch):
    lines.append({"a": 1})
    write, cut = os.write, os.ftruncate

    def failing(fd, data):
        write(fd, data[:4])
        raise OSError(errno.EIO, "Input/output error")

    def broken(fd, length):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "write", failing)
    monkeypatch.setattr(os, "ftruncate", broken)
    with pytest.raises(OSError, match="Input/output"):
        lines.append({"b": 2})
    assert path.read_bytes() == b'{"a":1}\n{"b"'
    assert lines.end == 8
    assert contents(path) == [{"a": 1}]
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="Input/output"):
        lines.append({"c": 3})
    monkeypatch.setattr(os, "ftruncate", cut)
    lines.append({"d": 4})
    assert contents(path) == [{"a": 1}, {"d": 4}]


def test_reading_stops_at_a_torn_line_even_if_more_follows(path):
    path.write_bytes(b'{"a":1}\n{"b":')
    reader = read_lines(path)
    assert next(reader) == (1, 8, {"a": 1})
    assert list(reader) == []


@pytest.mark.parametrize(
    "line", [b"{", b"nonsense", b'{"a":NaN}', b'{"a":Infinity}', b"\xff\xfe", b"", b"[" * 100_000, b"\0\0\0", b"{} {}"]
)
def test_bad_lines_are_told_and_reading_goes_on(path, line):
    path.write_bytes(b"1\n" + line + b"\n3\n")
    first, bad, last = contents(path)
    assert (first, last) == (1, 3)
    assert isinstance(bad, ValueError)
    assert str(bad).startswith("this is not JSON: ")


def test_whatever_json_wrote_is_read(path, lines):
    entry = {"a": [1, 2.5, None, "x", {"b": True}], "big": 2**70, "small": 5e-324}
    lines.append(entry)
    assert contents(path) == [json.loads(json.dumps(entry))]
