"""Bad input that a second trial found: each is refused before anything is written, without a word of Python's."""

import re

import numpy as np
import pytest

import tiltmeter as tm
from tiltmeter.data.example_weights import example_weights

PYTHON = re.compile(
    r"Traceback|Errno|codec|set_int_max|positional argument|Unused Tokens|could not convert|object is not|<class|Error:"
)
PREDICT = ("predict", "--lr", "0.1")
FLAGS = [
    ((*PREDICT, "rho=0.8", "--weights", "1"), "--weights needs 2 values. Found 1."),
    ((*PREDICT, "variance=(1,)"), "`variance`"),
    ((*PREDICT, "rho=" + "(" * 5000), "A problem should be written as"),
    ((*PREDICT, "rho=__import__('os')"), "A problem should be written as"),
    ((*PREDICT, "classes=1000000000"), "`classes` should be at most 1,000. Found classes = 1,000,000,000."),
    ((*PREDICT, "shift=1e200"), "`gram` should have numbers up to 1e+100, to be squared. Found 1e+200."),
    ((*PREDICT, "variance=(1e200, 1)"), "`variance` should have numbers up to 1e+100"),
    (("report", "run", "-o", "."), "The name of a page should end in .html."),
    (("report", "run", "-o", ""), "The name of a page should end in .html."),
    (("report", "run", "-o", "people.csv"), "The name of a page should end in .html. Found 'people.csv'."),
    (("report", "run", "-o", "folder.html"), "A page should be written to a file. Found a folder at folder.html."),
    (("demo", "people.csv"), "The name of a page should end in .html. Found 'people.csv'."),
    (("init", "people.csv", "--label", "sex", "--group", "sex"), "`label` and `group` should be two columns."),
    (("explore", "--port", "99999", "--quiet"), "`port` should lie between 0 (any) and 65535. Found port = 99999."),
    (("explore", "--port", "-1", "--quiet"), "`port` should lie between 0 (any) and 65535."),
    (("data", "list", "x"), "Not understood: 'x'."),
    (("train", "bytes.toml"), "bytes.toml is not valid TOML: byte 1 is not UTF-8 text."),
    (("train", "digits.toml"), "digits.toml holds a number with more digits than can be read."),
    (("train", "deep.toml"), "deep.toml is nested too deeply to be read."),
]


@pytest.mark.parametrize(("argv", "sentence"), FLAGS, ids=[" ".join(argv)[:60] for argv, _ in FLAGS])
def test_flags_and_files(run, tmp_path, argv, sentence):
    table = "sex,age,pay\n" + "f,1,0\nm,2,1\n" * 40
    (tmp_path / "people.csv").write_text(table)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe[data]")
    (tmp_path / "digits.toml").write_text("a = " + "9" * 5000)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 20_000 + "]" * 20_000)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(*argv)
    assert (code, out) == (2, ""), err
    assert sentence in err
    assert not PYTHON.search(err), err
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "people.csv").read_text() == table


TRAIN = "[data]\nsource = 'people.csv'\nlabel = 'pay'\ngroup = 'sex'\n%s\n[model]\nhidden = %s\n[training]\nlr = 0.1\nsteps = 2\n%s"
FILES = [
    (("weights = 'town'", "[4]", ""), "`weights` should name a column of numbers. Found words in the column 'town'."),
    (("columns = ['age', 'pay']", "[4]", ""), "The label should not be among the features. Found the column 'pay' in both."),
    (("", str([2] * 3000), ""), "`hidden` should have at most 200 layers. Found 3,000."),
    (("", "[4]", "weights = {f = 0.0, m = 0.0}"), "`weights` should leave something to train on."),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "sentence"), FILES, ids=[sentence[:40] for _, sentence in FILES])
def test_training_files(run, tmp_path, parts, sentence):
    pytest.importorskip("torch")
    (tmp_path / "people.csv").write_text("sex,age,pay,town\n" + "f,1,0,Graz\nm,2,1,Lyon\nf,3,1,Graz\nm,1,0,Oslo\n" * 40)
    (tmp_path / "t.toml").write_text(TRAIN % parts)
    code, out, err = run("train", "t.toml")
    assert (code, out) == (2, ""), err
    assert sentence in err
    assert not PYTHON.search(err), err


def test_an_address_of_another_machine_is_refused(run, tmp_path):
    pytest.importorskip("uvicorn")
    code, out, err = run("explore", "--share", "203.0.113.7", "--quiet")
    assert (code, out) == (2, "")
    assert "`share` should be an address of this machine, as 192.168.1.20. Found '203.0.113.7'" in err
    assert not PYTHON.search(err), err


def test_weights_that_leave_something():
    data = tm.GroupedData(np.zeros((60, 1)), [0, 1] * 30, ["a", "b"] * 30)
    assert example_weights(data, {"a": 0.0}).sum() == 30
