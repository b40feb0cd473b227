"""Run files changed in every way we could think of: what comes of them is a trajectory or one sentence, soon.

Bytes are flipped, cut, repeated and exchanged; JSON is changed in its structure and sealed again, so that not only the
checksums are tried; NumPy headers are rewritten. `load` may raise ValueError or a kind of OSError; `check` raises
nothing.
"""

import json
import shutil
import signal
import time

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Origin, Recorder, Trajectory, check, load, save
from tiltmeter.record.directory.atomic_files import sealed_file, sealed_line

LONGEST_SENTENCE = 1200
SECONDS = 10

#: Values that have broken parsers.
ODD = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, 0.5, -0.0, 1e308, 5e-324,
    "", "a", "time", "nan", "Infinity", "float64", "object", "int8", "<U5", "O", "(", "x" * 500, "\x00", "\u2028", "../x",
    "0.bin", "99.bin", "deadbeef", [], {}, [[]], [1], ["a"], [None], [1, [2]], {"a": 1}, {"array": "x.npy"},
    {"float": "inf"}, {"dims": ["time"], "labels": [1]},
]  # fmt: skip


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def directories(root):
    """Small runs of every kind."""
    origin = Origin(
        "example", problem={"rho": 0.8}, settings={"lr": 0.1, "list": [1, [2]], "recipe": {"a": 1}}, seeds=(3,)
    )
    with Recorder(root / "recorded", clock="step", origin=origin) as recorder:
        for step in range(4):
            loss = xr.DataArray([0.5 / (1 + step), np.nan], dims="group", coords={"group": ["+", "-"]})
            evaluation = {"loss": loss, "norm": step / 3}
            if step == 2:
                evaluation["kernel"] = xr.DataArray(np.arange(1025.0), dims="k")
            points = {"p": xr.DataArray(np.arange(9, dtype="float32"), dims="point")} if step % 2 else {}
            recorder.append(step, evaluation, points=points)
        recorder.rewind(2)
        recorder.diverged(xr.DataArray([1.0, np.nan], dims="seed", coords={"seed": [7, 8]}))
    save(recorder.trajectory(), root / "saved")
    data = xr.Dataset({"M": ("group", [0.5, np.nan]), "Q": 3.0}, {"group": ["+", "-"]}, {"loss": "Logistic"})
    save(data, root / "dataset")
    return sorted(path for path in root.iterdir())


def places(value, path=()):
    """Every place in nested JSON."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def changed(value, random):
    """The same JSON with one place replaced, removed, renamed or doubled."""
    value = json.loads(json.dumps(value))
    path = list(places(value))[random.integers(len(list(places(value))))]
    if not path:
        return ODD[random.integers(len(ODD))]
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    how = random.integers(5)
    if how == 0:
        del parent[path[-1]]
    elif how == 1 and isinstance(parent, dict):
        parent[str(ODD[random.integers(3, 8)])] = parent.pop(path[-1])
    elif how == 2 and isinstance(parent, list):
        parent.append(parent[path[-1]])
    elif how == 3 and random.random() < 0.2:
        parent[path[-1]] = f"nested {random.choice([70, 500, 3000, 100_000])} deep"
    else:
        parent[path[-1]] = ODD[random.integers(len(ODD))]
    return value


def mutate_bytes(good, random):
    bad, how = bytearray(good), random.integers(6)
    if how == 0:
        for place in random.integers(len(bad), size=random.integers(1, 4)):
            bad[place] = random.integers(256)
    elif how == 1:
        del bad[random.integers(len(bad)) :]
    elif how == 2:
        a, b = sorted(random.integers(len(bad), size=2))
        del bad[a:b]
    elif how == 3:
        a, b = sorted(random.integers(len(bad), size=2))
        bad[a:a] = bad[a:b]
    elif how == 4:
        place = random.integers(len(bad))
        bad[place:place] = bytes(random.integers(256, size=random.integers(1, 9), dtype=np.uint8))
    else:
        digits = [k for k, byte in enumerate(bad) if 48 <= byte < 58]
        if digits:
            bad[digits[random.integers(len(digits))]] = 48 + random.integers(10)
    return bytes(bad)


def mutate_json(name, good, random):
    """Another content with right checksums."""
    if name.endswith(".jsonl"):
        lines = good.splitlines(keepends=True)
        number = random.integers(len(lines))
        entry = changed(strip(json.loads(lines[number])), random)
        text = written(entry)
        lines[number] = sealed_line(text) if text.endswith(b"}") and len(text) > 2 else text + b"\n"
        if random.random() < 0.2:
            k = random.integers(len(lines))
            lines[number], lines[k] = lines[k], lines[number]
        return b"".join(lines)
    entry = changed(strip(json.loads(good)), random)
    text = written(entry, indent=1)
    return sealed_file(text) if isinstance(entry, dict) and entry else text


def written(entry, **how):
    """JSON text; nesting that Python itself would not write is written by hand."""
    text = json.dumps(entry, **how)
    for depth in (70, 500, 3000, 100_000):
        text = text.replace(f'"nested {depth} deep"', "[" * depth + "]" * depth)
    return text.encode()


def strip(entry):
    return {key: part for key, part in entry.items() if key != "crc"}


def mutate_array(good, random):
    headers = [
        b"(",
        b"{",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,), }",
        b"[" * 200,
        b"\xff",
        b"1L",
    ]
    headers += [b"{'descr': '|O', 'fortran_order': False, 'shape': (1025,), }", b"{'descr': [('a', '<f8')]}", b"\\\n'"]
    header = headers[random.integers(len(headers))]
    return good[:8] + len(header + b"\n").to_bytes(2, "little") + header + b"\n" + good[128:]


def mutate(file, random):
    good = file.read_bytes()
    if not good or file.suffix == ".bin" or random.random() < 0.4:
        return mutate_bytes(good or b"0", random)
    if file.suffix == ".npy":
        return mutate_array(good, random)
    return mutate_json(file.name, good, random)


def attempt(path):
    """Load, look at the result, check: the sentence of a refusal, or None. Anything else than a refusal goes on up."""
    sentence = None
    try:
        run = load(path)
        str(run), repr(run)
        if isinstance(run, Trajectory):
            run._repr_html_()
            for name in run.points:
                run.points[name]
    except (ValueError, OSError) as error:
        sentence = str(error)
        assert sentence, "a refusal says something"
        assert len(sentence) < LONGEST_SENTENCE, sentence
        assert "\n" not in sentence.replace(str(path), "") or "xarray" in sentence, sentence
    report = check(path)
    assert len(str(report)) < 25 * LONGEST_SENTENCE
    return sentence


def fuzz(root, count, seed):
    """How many of so many mutations were refused; the slowest took how long."""
    random = np.random.default_rng(seed)
    files = [file for run in directories(root) for file in run.rglob("*") if file.is_file()]
    run_of = {file: root / file.relative_to(root).parts[0] for file in files}
    refused, slowest = 0, 0.0

    def too_long(*_):
        raise TimeoutError(f"no answer within {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, too_long)
    try:
        for k in range(count):
            file = files[random.integers(len(files))]
            good = file.read_bytes()
            bad = mutate(file, random)
            file.write_bytes(bad)
            start = time.perf_counter()
            signal.alarm(SECONDS)
            try:
                refused += attempt(run_of[file]) is not None
            except Exception as error:
                keep = root.parent / f"failure-{seed}-{k}"
                shutil.copytree(run_of[file], keep)
                raise AssertionError(f"mutation {k} of seed {seed}, {file.name}, kept in {keep}: {error!r}") from error
            finally:
                signal.alarm(0)
                file.write_bytes(good)
            slowest = max(slowest, time.perf_counter() - start)
    finally:
        signal.signal(signal.SIGALRM, before)
    return refused, slowest


KNOWN = [
    ("run.json", {"origin": {"source": "x", "problem": nested(500)}}, "nested more than 60 deep"),
    ("run.json", {"origin": {"source": "x", "settings": {"a": nested(500)}}}, "nested more than 60 deep"),
    ("run.json", {"origin": {"source": "x", "version": [1]}}, "`version` of an Origin should be text"),
    ("run.json", {"origin": {"source": "x" * 10**5, "seeds": "abc"}}, "`seeds` of an Origin should be"),
    ("run.json", {"origin": {"source": ["x" * 10**5]}}, "`source` of an Origin should be a word"),
    ("run.json", {"origin": "x"}, "Found origin 'x'"),
    ("run.json", {"clock": "x" * 10**5}, "Found clock 'xxxx"),
    ("run.json", {"clock": [1]}, "Found clock [1]"),
    ("run.json", {"format": 10**400}, "was written by a newer tiltmeter: format 1000"),
    ("run.json", {"format": True}, "Found format True"),
    ("end.json", {"reason": [1]}, "it says neither how the run ended nor where"),
]


@pytest.mark.parametrize(
    ("name", "change", "fact"), KNOWN, ids=[f"{k}-{fact[:30]}" for k, (*_, fact) in enumerate(KNOWN)]
)
def test_known_bad_small_files(tmp_path, make_run, name, change, fact):
    path = make_run(tmp_path / "run")
    said = {**strip(json.loads((path / name).read_text())), **change}
    (path / name).write_bytes(sealed_file(json.dumps(said, indent=1).encode()))
    assert fact in attempt(path)
    assert fact in str(check(path))


@pytest.mark.parametrize("depth", [70, 500])
def test_nested_labels(tmp_path, make_run, rewrite, depth):
    path = make_run(tmp_path / "run")
    entry = json.loads((path / "curves.jsonl").read_text().splitlines()[0])
    entry["layouts"]["loss"]["coords"]["group"][0] = nested(depth)
    rewrite(path / "curves.jsonl", {0: entry})
    assert "line 1: a label is nested more than 60 deep." in attempt(path)


@pytest.mark.parametrize("header", [b"(", b"[" * 200, b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**12,)}"])
def test_damaged_npy_headers(tmp_path, make_run, header):
    path = make_run(tmp_path / "run")
    file = min((path / "arrays").iterdir())
    good = file.read_bytes()
    file.write_bytes(good[:8] + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + good[128:])
    assert f"line 1: arrays/{file.name} " in attempt(path)


def test_a_changed_digit_anywhere_is_found(tmp_path, make_run):
    """In every file, every digit that is part of what was written."""
    path = make_run(tmp_path / "run", evaluations=3)
    shutil.rmtree(path / "arrays")  # tried on their own; here only that each line is named
    for name in ("run.json", "end.json", "curves.jsonl"):
        good = (path / name).read_bytes()
        for place, byte in enumerate(good):
            if 48 <= byte < 58:
                (path / name).write_bytes(good[:place] + bytes([48 + (byte - 47) % 10]) + good[place + 1 :])
                report = check(path)
                where = f"curves.jsonl, line {good[:place].count(10) + 1}: its checksum" if "l" in name[-1] else name
                assert any(where in problem for problem in report.problems), (name, place)
        (path / name).write_bytes(good)


def test_two_hundred_mutations(tmp_path):
    (tmp_path / "runs").mkdir()
    refused, _ = fuzz(tmp_path / "runs", 200, seed=0)
    assert refused > 100


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(1, 6))
def test_fifty_thousand_mutations(tmp_path, seed):
    (tmp_path / "runs").mkdir()
    refused, slowest = fuzz(tmp_path / "runs", 10_000, seed)
    assert refused > 5000
    assert slowest < SECONDS
    print(f"seed {seed}: {refused} of 10,000 refused, slowest {slowest:.2f} s")
