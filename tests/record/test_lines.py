import errno
import json
import os

import pytest

from tiltmeter.record.directory.atomic_files import sealed_line
from tiltmeter.record.directory.lines import Lines, read_blocks


@pytest.fixture
def path(tmp_path):
    return tmp_path / "curves.jsonl"


@pytest.fixture
def lines(path):
    lines = Lines(path)
    yield lines
    lines.close()


def contents(path):
    return [entry for block in read_blocks(path) for entry in block.entries]


A = b'{"a":1,"crc":"a702fc6e"}\n'


def test_a_line_is_with_the_system_when_append_returns(path, lines, monkeypatch):
    calls = []
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: calls.append(len(data)) or write(fd, data))
    lines.append({"a": 1})
    assert path.read_bytes() == A
    assert calls == [len(A)]
    assert lines.end == len(A)


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
    assert path.read_bytes() == A
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
    assert path.read_bytes() == A + b'{"b"'
    assert lines.end == len(A)
    assert contents(path) == [{"a": 1}]
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="Input/output"):
        lines.append({"c": 3})
    monkeypatch.setattr(os, "ftruncate", cut)
    lines.append({"d": 4})
    assert contents(path) == [{"a": 1}, {"d": 4}]


def test_reading_stops_at_a_torn_line_even_if_more_follows(path):
    path.write_bytes(A + b'{"b":')
    reader = read_blocks(path)
    assert next(reader)[::2] == (1, [len(A)])
    with path.open("ab") as file:
        file.write(b"2}\n" + A)
    assert list(reader) == []


@pytest.mark.parametrize(
    "line", [b"{", b"nonsense", b'{"a":NaN}', b'{"a":Infinity}', b"\xff\xfe", b"", b"[" * 100_000, b"\0\0\0", b"{} {}"]
)
def test_bad_lines_are_told_and_reading_goes_on(path, line):
    path.write_bytes(A + line + b"\n" + A)
    first, bad, last = contents(path)
    assert first == last == {"a": 1}
    assert isinstance(bad, ValueError)
    assert str(bad).startswith("this is not JSON: ")


def test_whatever_json_wrote_is_read(path, lines):
    entry = {"a": [1, 2.5, None, "x", {"b": True}], "big": 2**70, "small": 5e-324}
    lines.append(entry)
    assert contents(path) == [json.loads(json.dumps(entry))]


def test_a_changed_digit_is_found_wherever_it_is(path, lines):
    """Every byte of every line, changed to another that keeps it JSON or not."""
    for k in range(3):
        lines.append({"kind": "evaluation", "time": k, "values": {"loss": 0.125}})
    good = path.read_bytes()
    for place, byte in enumerate(good):
        for other in {byte ^ 1, byte ^ 2, ord("7")} - {byte, ord("\n")}:
            if byte == ord("\n"):
                continue
            path.write_bytes(good[:place] + bytes([other]) + good[place + 1 :])
            found = contents(path)
            line = good[:place].count(b"\n")
            assert [isinstance(entry, ValueError) for entry in found] == [k == line for k in range(3)]


def test_lines_need_their_checksum(path):
    path.write_bytes(b'{"a":1}\n' + A + b'{"c":3}\n')
    first, good, last = contents(path)
    assert str(first) == str(last) == "its checksum is missing"
    assert not isinstance(good, ValueError)
    path.write_bytes(A.replace(b":1", b":2"))
    [entry] = contents(path)
    assert str(entry) == "its checksum does not match: the line was changed after it was written"


def test_two_objects_on_one_line_do_not_make_up_for_a_broken_one(path):
    """Lines are decoded together; what is only valid together is not accepted."""
    path.write_bytes(sealed_line(b'{"a":1},{"b":2}') + sealed_line(b'{"c":[1}') + sealed_line(b"{2]}"))
    assert all(isinstance(entry, ValueError) for entry in contents(path))


def test_many_blocks_are_one_file(path, lines):
    for k in range(9000):
        lines.append({"k": k, "text": "x" * 40})
    blocks = list(read_blocks(path))
    assert len(blocks) > 3
    assert blocks[-1].ends[-1] == path.stat().st_size
    assert [block.first for block in blocks][1:] == [b.first + len(b.entries) for b in blocks][:-1]
    assert [entry["k"] for block in blocks for entry in block.entries] == list(range(9000))


def test_plain_looks_are_read_as_written_whatever_names_and_numbers(tmp_path):
    """They are encoded by another encoder than the rest; a name with half of a character pair is written all the
    same."""
    numbers = {
        "half \ud800": 1e22,
        "tiny": 5e-324,
        "large": 2**64 - 1,
        "none": None,
        "word": "-Infinity",
        "list": [0.1],
    }
    lines = Lines(tmp_path / "lines")
    for name, value in numbers.items():
        lines.append({"kind": "evaluation", "time": 0.1, "values": {name: value}})
    lines.close()
    (block,) = read_blocks(tmp_path / "lines")
    assert [entry["values"] for entry in block.entries] == [{name: value} for name, value in numbers.items()]
