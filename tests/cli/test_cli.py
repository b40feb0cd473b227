"""The command line: verbs, sentences, JSON, files, and exit codes."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from tiltmeter import load, predict, save
from tiltmeter.cli import HEADINGS, make_app, verbs
from tiltmeter.theory import cases

NUMBERS = "rho=0.8, variance=(0.5, 1.5), overlap=0.5"
CROSSING = [NUMBERS, "--lr", "0.1"]
SENTENCE = "Group - has the lower loss until t = 5.643 (larger variance), then group + (more data)."


class TestPredict:
    def test_a_sentence_in_words_comes_first(self, run):
        code, out, err = run("predict", *CROSSING)
        assert code == 0
        assert out.splitlines()[0] == SENTENCE
        assert "Time scales tau_M = 14.29, tau_R = 14.29" in out
        assert err == ""

    def test_json_is_strict_and_complete(self, run):
        code, out, _ = run("predict", *CROSSING, "--json")
        found = json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))
        assert code == 0
        assert found["sentence"] == f"{SENTENCE}\nExact theory."
        assert found["crossings"][0]["time"] == pytest.approx(5.643, abs=1e-3)
        assert [phase["driver"] for phase in found["phases"]] == ["variance", "representation"]
        assert found["final"]["loss"]["values"] == pytest.approx([0.2340, 0.4416], abs=1e-4)
        assert found["stability_limit"] == pytest.approx(2 * 0.7 / (0.8 * 0.25 + 0.2 * 2.25))

    def test_to_a_run_directory_and_back(self, run, tmp_path):
        assert run("predict", *CROSSING, "--to", "run")[0] == 0
        assert load(tmp_path / "run")["loss"].shape == (400, 2)
        code, out, _ = run("show", "run")
        assert code == 0
        assert out.splitlines()[0] == SENTENCE
        code, out, _ = run("show", "run", "--json", "--curve", "error")
        assert json.loads(out)["headline"]["claim"] == "Group + has the lower error throughout."

    @pytest.mark.parametrize(
        ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>")]
    )
    def test_pictures(self, run, tmp_path, suffix, magic):
        assert run("predict", "three-phases", "--save", f"a.{suffix}")[0] == 0
        assert (tmp_path / f"a.{suffix}").read_bytes().lstrip().startswith(magic)

    def test_a_named_case_with_another_learning_rate(self, run):
        found = json.loads(run("predict", "three-phases", "--lr", "0.1", "--json")[1])
        assert [round(c["time"], 2) for c in found["crossings"]] == [1.74]

    def test_thresholds_and_negative_numbers(self, run):
        problem = "thresholds=(0.471, -0.188), rho=0.7, shift=4, variance=(0.1, 1), overlap=0.9"
        found = json.loads(run("predict", problem, "--lr", "0.5", "--json")[1])
        assert [round(c["time"], 2) for c in found["crossings"]] == [1.13, 11.88]

    def test_all_sgd_options(self, run):
        options = ["--batch", "4", "--weight-decay", "0.1", "--weights", "1", "2", "--proportions", "0.5", "0.5", "--train-bias",
                   "--start-scale", "0.5", "--until", "50", "--since", "0.1", "--evaluations", "20"]  # fmt: skip
        assert run("predict", *CROSSING, *options)[0] == 0

    def test_options_override_the_file(self, run, tmp_path):
        (tmp_path / "p.toml").write_text(
            "[problem]\nrho = 0.8\nvariance = [0.5, 1.5]\noverlap = 0.9\n[sgd]\nlr = 0.1\nstart = {Q = 0.0}\n[times]\nat = [0.1, 1, 99]\n"
        )
        from_file = json.loads(run("predict", "--config", "p.toml", "--json")[1])
        assert [round(c["time"], 2) for c in from_file["crossings"]] == [21.55]
        overridden = json.loads(run("predict", "overlap=0.5", "--config", "p.toml", "--json")[1])
        assert [round(c["time"], 3) for c in overridden["crossings"]] == [5.643]


BAD = [
    ([], 0, ""),
    (["predict"], 2, 'No problem given: pass one, as "rho=0.8, variance=(0.5, 1.5)", a case such as centred-crossing'),
    (["predict", "rho=0.8"], 2, "`lr` is missing: pass --lr, as in --lr 0.1."),
    (["predict", "rho=1.2", "--lr", "0.1"], 2, "`rho` should lie strictly between 0 and 1. Found rho = 1.2."),
    (["predict", "rho='x'", "--lr", "0.1"], 2, "The problem: `rho` should be a number. Found rho = 'x'."),
    (["predict", "rho=x", "--lr", "0.1"], 2, "A problem should be written as \"rho=0.8, variance=(0.5, 1.5), overlap=0.5\". Found 'rho=x'."),
    (["predict", "rh=0.8", "--lr", "0.1"], 2, "The problem: unknown key 'rh'."),
    (["predict", *CROSSING[:-1], "9"], 2, "below the stability limit"),
    (["predict", *CROSSING, "--momentum", "0.9"], 2, "no exact solution with momentum. Use `simulate`."),
    (["predict", *CROSSING, "--curve", "lss"], 2, "No curve 'lss'. There are: loss"),
    (["predict", *CROSSING, "--save", "a.bmp"], 2, "bmp"),
    (["predict", *CROSSING, "--until", "0.001"], 2, "`since` should be positive and below `until`."),
    (["predict", *CROSSING, "--evaluations", "1"], 2, "`evaluations` should be at least 2."),
    (["predict", f"{NUMBERS}, thresholds=(1, 1), label_bias=(1, 1)", "--lr", "0.1"], 2, "`thresholds` replaces `label_bias`: give one of them."),
    (["predict", "nope"], 2, "No case 'nope'. There are: centred-crossing"),
    (["predict", "case='no-bias', rho=0.5"], 2, "A named case fixes the problem; drop `rho` or the case."),
    (["predict", "--config", "absent.toml"], 2, "No file absent.toml."),
    (["predict", "--bogus", "1"], 2, "Unknown option: --bogus."),
    (["show", "absent"], 2, "absent"),
    (["bench", "--folder", "absent"], 2, "No benchmarks in absent"),
    (["frobnicate"], 2, 'Unknown command "frobnicate".'),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "code", "sentence"), BAD, ids=[" ".join(argv)[:50] for argv, _, _ in BAD])
def test_bad_input_ends_with_one_sentence_and_code_2(run, argv, code, sentence):
    found, _, err = run(*argv)
    assert found == code
    assert sentence in err
    assert len(err.splitlines()) == (1 if code else 0)
    assert not err or err.startswith("tiltmeter: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[problem\n", "is not valid TOML"),
        ("[probem]\nrho = 0.5\n", "unknown key 'probem'. There are: problem, sgd, times."),
        ("[problem]\nroh = 0.5\n[sgd]\nlr = 0.1\n", "unknown key 'roh'. There are: case, rho, shift"),
        (
            "[problem]\nrho = 0.5\n[sgd]\nlr = 0.1\nweights = [1, 2, 3]\n",
            "`weights` should have one number per group (2). Found 3.",
        ),
        ('[problem]\nrho = 0.5\n[sgd]\nlr = {schedule = "Nope"}\n', "`lr`: no schedule 'Nope'. There are: PowerDecay"),
    ],
)
def test_a_bad_file_is_named_in_one_sentence(run, tmp_path, text, sentence):
    (tmp_path / "p.toml").write_text(text)
    code, _, err = run("predict", "--config", "p.toml")
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_an_existing_run_is_not_overwritten(run):
    assert run("predict", *CROSSING, "--to", "run")[0] == 0
    code, _, err = run("predict", *CROSSING, "--to", "run")
    assert code == 2
    assert "run" in err


def test_demo_ends_with_a_table_and_two_pages(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run("demo")
    page = (tmp_path / "tiltmeter-demo.html").read_text()
    assert code == 0
    assert "shift and label imbalance" in out  # the widest cell, whole in a terminal of 80 columns
    assert out.splitlines()[-1].endswith("tiltmeter-demo.html")
    assert "Phase diagram ..." in err
    theory = (tmp_path / "tiltmeter-demo-theory.html").read_text()
    assert page.index("<svg") < page.index("Forecast: ")  # the picture first, then the sentences
    assert page.count('<svg class="wide"') == page.count('<svg class="narrow"') == 2
    assert "<script>" not in page
    assert 'href="tiltmeter-demo-theory.html"' in page
    assert theory.count('class="chart"') >= 6
    assert "src=" not in theory.split("<script>")[0]
    assert "prefers-color-scheme:dark" in page
    assert "prefers-color-scheme:dark" in theory


def test_bench_runs_the_scripts_of_a_folder(run, tmp_path):
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "quick.py").write_text("print('2.00x')\n")
    code, out, _ = run("bench", "quick")
    assert code == 0
    assert out == "# quick\n2.00x\n"
    assert run("bench", "slow")[0] == 2


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_has_a_line_help_and_an_example_that_can_be_called(run, verb):
    code, out, _ = run(verb, "--help")
    assert code == 0
    assert verbs()[verb].line in " ".join(out.split())
    assert "default: False" not in out
    *_, example = out.splitlines()
    assert example.startswith(f"Example: tiltmeter {verb}")
    make_app().parse_args(shlex.split(example)[2:], exit_on_error=False, print_error=False)  # raises on a bad one


def test_the_page_of_the_command_line_shows_every_verb():
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert [verb for verb in verbs() if f"tiltmeter {verb}" not in page] == []


def test_verbs_are_listed_in_the_order_of_a_first_reading(run):
    lines = run("--help")[1].splitlines()
    listed = [line.split()[1] for line in lines if line.startswith("│ ") and line[2] not in " -"]
    assert listed == [name for name, verb in verbs().items() if verb.heading]
    assert all(f"─ {name} ─" in "\n".join(lines) for name in HEADINGS)


def test_as_a_module_and_its_version():
    done = subprocess.run([sys.executable, "-m", "tiltmeter", "--version"], capture_output=True, text=True, check=True)
    from tiltmeter import __version__

    assert done.stdout.strip() == __version__


def test_show_a_run_with_three_groups(run, tmp_path):
    import numpy as np

    from tiltmeter import SGD
    from tiltmeter.theory import Mixture

    three = Mixture({"a": 0.8, "b": 0.1, "c": 0.1}, {"a": 0.5, "b": 1.5, "c": 1.0}, np.diag([0.0] * 3 + [1.0] * 3))
    save(predict(three, SGD(lr=0.1), np.geomspace(0.01, 100, 30)), tmp_path / "three")
    code, out, _ = run("show", "three")
    assert code == 0
    assert out.startswith("Group a has the lowest loss throughout.")
    assert "not judged" not in out
    assert "…" not in out  # readable at 80 columns: one row for each group
    assert any(line.split()[:1] == ["b"] for line in out.splitlines())


def test_a_crossing_of_theory_has_its_own_time_in_the_table(run):
    code, out, _ = run("predict", "centred-crossing")
    assert code == 0
    assert "until t = 5.643" in out
    assert "…" not in out
    (row,) = [line.split() for line in out.splitlines() if "- -> +" in line]
    assert row[0] == "5.643"
    assert len(row) == 1 + 3 + 6  # the time, "- -> +", and three curves of two groups


def test_the_cases_of_the_command_line_are_those_of_the_library():
    from tiltmeter.theory.cli.options import CASES

    names = {n for n, f in vars(cases).items() if callable(f) and f.__module__ == cases.__name__ and n.islower()}
    assert {name.replace("-", "_") for name in CASES} == names


def test_show_a_saved_equilibrium(run):
    options = [NUMBERS, "--samples", "2", "--loss", "square"]
    _, first, _ = run("equilibrium", *options, "--to", "end")
    code, again, _ = run("show", "end")
    assert code == 0
    assert again == first
    assert "is wrong" in again.splitlines()[0]
    assert json.loads(run("show", "end", "--json")[1]) == json.loads(run("equilibrium", *options, "--json")[1])
    code, _, err = run("show", "end", "--save", "end.svg")
    assert code == 2
    assert "holds no curves over time to draw" in err


def test_show_a_dataset_of_ones_own(run, tmp_path):
    save(
        xr.Dataset({"height": ("tree", [1.5, float("nan")], {"unit": "m"})}, {"tree": ["oak", "ash"]}), tmp_path / "own"
    )
    assert "height" in run("show", "own")[1]
    found = json.loads(run("show", "own", "--json")[1])["curves"]["height"]
    assert found["values"] == [1.5, None]
    assert found["coords"] == {"tree": ["oak", "ash"]}


def test_a_verb_that_needs_torch_says_so(run, tmp_path, monkeypatch):
    (tmp_path / "short.toml").write_text("[training]\nlr = 0.1\nsteps = 2\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    for argv in (("train", "short.toml"), ("forecast", "short.toml", "--rehearse"), ("measure", "effective-rank")):
        code, out, err = run(*argv)
        assert (code, out) == (2, "")
        assert err == f"tiltmeter: `tiltmeter {argv[0]}` needs PyTorch: pip install 'tiltmeter[torch]'\n"
