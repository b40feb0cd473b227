"""What is said about lines that are not as a recorder writes them."""

import json

import numpy as np
import pytest
import xarray as xr

from tiltmeter.record import Recorder, check, load

FLAT = {"dims": [], "shape": [], "coords": {}, "dtype": "float64", "attrs": {}}
PAIR = {"dims": ["k"], "shape": [2], "coords": {"k": ["a", "b"]}, "dtype": "float64", "attrs": {}}
CURVE = {"dims": ["time"], "shape": [2], "coords": {"time": [0, 1]}, "dtype": "float64", "attrs": {}}


def evaluate(**entry):
    return {"kind": "evaluation", "time": 100, "values": {"norm": 1.0}, **entry}


def new(layout, values=1.0):
    return evaluate(layouts={"new": layout}, values={"new": values})


def whole(layout, values=(1.0, 2.0), name="whole"):
    return {"kind": "curve", "name": name, "layout": layout, "values": list(values)}


BAD = [
    (17, "a line should be an object"),
    ([1, 2], "a line should be an object"),
    ({}, "a line of kind None is not known"),
    ({"kind": "photo"}, "a line of kind 'photo' is not known"),
    ({"kind": "evaluation", "values": {}}, "'time' is missing"),
    ({"kind": "evaluation", "time": 100}, "'values' is missing"),
    (evaluate(time="100"), "an evaluation should have a time and values"),
    (evaluate(time=True), "an evaluation should have a time and values"),
    (evaluate(time=None), "an evaluation should have a time and values"),
    (evaluate(values=[1]), "an evaluation should have a time and values"),
    (evaluate(time=50), "time 50 does not come after 50"),
    (evaluate(time=2**80), "1208925819614629174706176 is not a time"),
    (evaluate(values={"norm": "high"}), "the values of 'norm' do not fit its layout: 'high' is not a number"),
    (
        evaluate(values={"norm": [1.0]}),
        "the values of 'norm' do not fit its layout: values have shape (1,) where () is",
    ),
    (
        evaluate(values={"loss": [1.0]}),
        "the values of 'loss' do not fit its layout: values have shape (1,) where (2,) is",
    ),
    (evaluate(values={"loss": [[1], [2]]}), "the values of 'loss' do not fit its layout"),
    (evaluate(values={"unheard": 1.0}), "the layout of 'unheard' is not known"),
    (evaluate(values={"norm": {"array": "nowhere.npy"}}), "arrays/nowhere.npy is missing"),
    (evaluate(values={"norm": {"array": "../run.json"}}), "'../run.json' is not the name of an array file"),
    (evaluate(values={"norm": {"array": "/etc/passwd"}}), "is not the name of an array file"),
    (evaluate(values={"norm": {"array": 3}}), "3 is not the name of an array file"),
    (evaluate(values={"norm": {"file": "a.npy"}}), "'array' is missing"),
    (
        evaluate(values={"kernel": {"array": "other.npy"}}),
        "holds float64 of shape (3,) where float64 of shape (1500,) is",
    ),
    (evaluate(layouts={"norm": PAIR}), "'norm' changes its layout: `dims` was [] and is now"),
    (evaluate(layouts=[1]), "[1] should be an object"),
    (new(3), "a layout should be an object"),
    (new({**FLAT, "dims": None}), "a layout should have `dims`"),
    (new({**FLAT, "shape": [1]}), "a layout should have one size for each dimension"),
    (new({**PAIR, "shape": [-2]}), "a layout should have one size for each dimension"),
    (new({**FLAT, "dtype": "object"}), "'object' is not a type of numbers"),
    (new({**FLAT, "dtype": "nonsense"}), "'nonsense' is not a type of numbers"),
    (new({**PAIR, "coords": {"k": ["a"]}}, [1, 2]), "the coordinate 'k' should have one label for each place"),
    (new({**PAIR, "coords": {"j": ["a"]}}, [1, 2]), "the coordinate 'j' should have one label for each place"),
    (new({**PAIR, "dims": ["time"], "coords": {}}, [1, 2]), "cannot have a `time` dimension"),
    (whole(CURVE, name="norm"), "'norm' is already there"),
    (whole(CURVE, name=3), "3 is not a name"),
    (whole(PAIR), "'whole' should have one time for each value"),
    (whole({**CURVE, "coords": {}}), "'whole' should have one time for each value"),
    (whole({**CURVE, "coords": {"time": [1, 0]}}), "the times of 'whole' should increase"),
    (whole({**CURVE, "coords": {"time": [0, {"float": "inf"}]}}), "the times of 'whole' should increase"),
    (whole({**CURVE, "coords": {"time": ["a", "b"]}}), "the times of 'whole' should increase"),
    (whole(CURVE, values=[1.0]), "values have shape (1,) where (2,) is expected"),
    ({"kind": "diverged"}, "'at' is missing"),
    ({"kind": "diverged", "at": 3}, ""),
    ({"kind": "array", "name": "a", "layout": FLAT}, "'values' is missing"),
    ({"kind": "coords", "coords": 3, "sizes": {}}, ""),
]


@pytest.mark.parametrize(("entry", "fact"), BAD, ids=[f"{k}-{fact[:30]}" for k, (_, fact) in enumerate(BAD)])
def test_a_bad_line_is_named_wherever_it_stands(tmp_path, make_run, rewrite, entry, fact):
    path = make_run(tmp_path / "run")
    np.save(path / "arrays" / "other.npy", np.zeros(3))
    curves = path / "curves.jsonl"
    good = curves.read_bytes()
    if not isinstance(entry, dict):
        fact = "its checksum is missing"
    after = {"kind": "evaluation", "time": 200, "values": {"norm": 1.0}}
    for more in ((entry,), (entry, after)):
        curves.write_bytes(good)
        rewrite(curves, {}, more)
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            load(path)
        assert str(caught.value).startswith(f"{curves}, line 7: ")
        assert fact in str(caught.value)
        report = check(path)
        assert not report.ok
        assert any(problem.startswith("curves.jsonl, line 7: ") and fact in problem for problem in report.problems)


def test_one_bad_value_among_many_good_ones_is_named(tmp_path, make_run, rewrite):
    path = make_run(tmp_path / "run", evaluations=100)
    length = (path / "curves.jsonl").stat().st_size
    lines = (path / "curves.jsonl").read_text().splitlines()
    entry = json.loads(lines[41])
    entry["values"]["loss"] = [0.5, "x"]
    rewrite(path / "curves.jsonl", {41: entry})
    with pytest.raises(ValueError, match=r"curves.jsonl, line 42: the values of 'loss' do not fit its layout"):
        load(path)
    report = check(path)
    assert (report.evaluations, [problem.split(":")[0] for problem in report.problems]) == (
        100,
        [
            "curves.jsonl, line 42",
            f"curves.jsonl has {(path / 'curves.jsonl').stat().st_size} bytes where end.json says {length}",
        ],
    )


@pytest.mark.parametrize("bad", [3, 30, 39])
def test_the_line_is_right_however_readings_are_gathered(tmp_path, origin, rewrite, bad):
    """Large inline readings are gathered every few lines; the damage shows then, not at its own line."""
    path = tmp_path / "run"
    with Recorder(path, clock="step", origin=origin) as recorder:
        for step in range(40):
            recorder.append(step, {"x": xr.DataArray(np.full(1000, 0.5), dims="k")})
    lines = (path / "curves.jsonl").read_text().splitlines()
    rewrite(path / "curves.jsonl", {bad: json.loads(lines[bad].replace("0.5,", "", 1))})
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        load(path)
    assert str(caught.value) == (
        f"{path / 'curves.jsonl'}, line {bad + 1}: the values of 'x' do not fit its layout: "
        "values have shape (999,) where (1000,) is expected."
    )
    lines = [problem for problem in check(path).problems if "line" in problem]
    assert [line.split(":")[0] for line in lines] == [f"curves.jsonl, line {bad + 1}"]


def refusal(path):
    try:
        load(path)
    except ValueError as error:
        return str(error)
    return None


def test_flipped_bytes_never_surprise(tmp_path, make_run):
    """Damage that is still JSON may pass; nothing else than a sentence may come of it."""
    path = make_run(tmp_path / "run", evaluations=4)
    random = np.random.default_rng(0)
    refused = 0
    for name in ("curves.jsonl", "run.json", "end.json"):
        good = (path / name).read_bytes()
        for _ in range(200):
            bad = bytearray(good)
            for place in random.integers(len(good), size=random.integers(1, 4)):
                bad[place] = random.integers(256)
            (path / name).write_bytes(bad)
            sentence = refusal(path)
            assert sentence is None or str(path) in sentence
            refused += sentence is not None
            assert str(check(path))
        (path / name).write_bytes(good)
    assert refused > 200
    assert check(path).ok
