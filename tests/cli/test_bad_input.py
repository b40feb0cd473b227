"""Known-bad values of files and flags: every one is refused in a sentence of ours, without a word of Python's."""

import re

import pytest

#: Words of Python's own messages.
PYTHON = re.compile(
    r"Traceback|object is not|has no attribute|positional argument|keyword argument|unhashable|not subscriptable|"
    r"must be (?:real|str|int)|cannot be interpreted|invalid literal|unsupported operand|NoneType|<class|Error:|_[a-z]+\(\)"
)
TRAIN = "[data]\nsource = 'digits'\n[model]\nhidden = [4]\n[training]\nlr = 0.1\nsteps = 2\n"


def swapped(table, line):
    """The small training file with one more line in this table."""
    key = line.split("=")[0].strip()
    kept = "\n".join(row for row in TRAIN.splitlines() if row.split("=")[0].strip() != key)
    return kept.replace(f"[{table}]", f"[{table}]\n{line}") if f"[{table}]" in kept else f"{kept}\n[{table}]\n{line}\n"


FILES = {
    "data = ''": ("data = ''", "t.toml [data] should be a table of keys and values. Found ''."),
    "training = 3": ("training = 3", "[training] should be a table"),
    "evaluations = []": ("evaluations = []", "[evaluations] should be a table"),
    "weights = [1]": (swapped("training", "weights = [1]"), "`weights` should be a table, each a number from 0.0 to"),
    "weights text": (swapped("training", "weights = {a = 'x'}"), "`weights` should be a table"),
    "hidden = [-3]": (swapped("model", "hidden = [-3]"), "[model]: `hidden` should be a list, each a whole number from 1"),
    "hidden = [0]": (swapped("model", "hidden = [0]"), "Found hidden = [0]."),
    "hidden = 3": (swapped("model", "hidden = 3"), "Found hidden = 3."),
    "hidden = [1e9]": (swapped("model", "hidden = [1e9]"), "each a whole number"),
    "hidden huge": (swapped("model", "hidden = [1000000000]"), "`hidden` should be at most"),
    "hidden text": (swapped("model", "hidden = ['a']"), "each a whole number"),
    "activation": (swapped("model", "activation = 3"), "`activation` should be a text. Found activation = 3."),
    "misspelt": (swapped("model", "hiden = [3]"), "unknown key 'hiden'. There are: hidden, activation, outputs. Did you mean 'hidden'?"),
    "misspelt table": ("[trainig]\n", "unknown key 'trainig'. There are: data, problem, model, training, question, evaluations, forecast. Did you mean 'training'?"),
    "lr text": (swapped("training", "lr = 'fast'"), "`lr` should be a number above 0.0"),
    "lr nan": (swapped("training", "lr = nan"), "`lr` should be a number above 0.0"),
    "lr inf": (swapped("training", "lr = inf"), "`lr` should be a number above 0.0"),
    "lr zero": (swapped("training", "lr = 0"), "`lr` should be a number above 0.0"),
    "lr true": (swapped("training", "lr = true"), "`lr` should be a number above 0.0"),
    "steps = 1e18": (swapped("training", "steps = 1e18"), "`steps` should be a whole number from 1 to 10,000,000,000."),
    "steps huge": (swapped("training", "steps = 1000000000000000000"), "`steps` should be a whole number from 1 to"),
    "steps negative": (swapped("training", "steps = -1"), "`steps` should be a whole number from 1"),
    "batch": (swapped("training", "batch = 'some'"), '`batch` should be a whole number from 1 to 1,000,000,000 or "all".'),
    "nesterov": (swapped("training", "nesterov = 1"), "`nesterov` should be true or false."),
    "momentum": (swapped("training", "momentum = 'x'"), "`momentum` should be a number."),
    "seed": (swapped("training", "seed = -1"), "`seed` should be a whole number from 0"),
    "loss": (swapped("training", "loss = 3"), "`loss` should be a text."),
    "clip": (swapped("training", "clip = -1"), "`clip` should be a number above 0.0"),
    "schedule": (swapped("training", "schedule = {kind = 'Cosine'}"), 'as lr = {schedule = "Cosine", initial = 0.1,'),
    "checkpoint": (swapped("training", "checkpoint = 0"), "`checkpoint` should be a whole number from 1"),
    "per_decade": (swapped("evaluations", "per_decade = 9223372036854775807"), "`per_decade` should be a whole number from 1 to 10,000."),
    "per_decade text": (swapped("evaluations", "per_decade = 'many'"), "`per_decade` should be a whole number"),
    "share": (swapped("data", "share = 'big'"), "`share` should be a number."),
    "source": (swapped("data", "source = ''"), "[data] source: no file without a name."),
    "source list": (swapped("data", "source = [1]"), "`source` should be a text."),
    "missing": (swapped("data", "missing = 'ignore'"), '`missing` should be "drop" or "impute" or "error".'),
    "group": (swapped("data", "group = 3"), "`group` should be a text or a list, each a text."),
    "nothing": ("", "[training] needs `lr`, the learning rate."),
    "no toml": ("= 3", "is not valid TOML"),
}  # fmt: skip

PROBLEM = "[problem]\nrho = 0.8\n[sgd]\nlr = 0.1\n"
PROBLEMS = {
    "sgd = [1]": ("sgd = [1]", "[sgd] should be a table of keys and values. Found [1]."),
    "train_bias = 0.5": (PROBLEM + "train_bias = 0.5", "`train_bias` should be true or false. Found train_bias = 0.5."),
    "weights = [1]": (PROBLEM + "weights = [1]", "`weights` should have one number per group (2). Found 1."),
    "weights text": (PROBLEM + "weights = 'x'", "`weights` should be a list, each a number or a table."),
    "start": (PROBLEM + "start = {X = 1}", "unknown key 'X'. There are: M, R, Q, bias."),
    "lr schedule": (PROBLEM.replace("0.1", "{schedule = 'Sine'}"), "`lr`: no schedule 'Sine'. There are: PowerDecay"),
    "lr schedule keys": (PROBLEM.replace("0.1", "{schedule = 'Cosine', size = 1}"), "unknown key 'size'. There are: initial"),
    "lr schedule text": (PROBLEM.replace("0.1", "{schedule = 'Cosine', initial = 'a', duration = 1}"), "`lr`"),
    "rho": (PROBLEM.replace("0.8", "'x'"), "`rho` should be a number. Found rho = 'x'."),
    "weight alone": ("[problem]\nweight = {a = 1.0}\n[sgd]\nlr = 0.1", "A problem with `weight` also needs `variance`."),
    "evaluations": (PROBLEM + "[times]\nevaluations = 1", "`evaluations` should be a whole number from 2"),
    "at": (PROBLEM + "[times]\nat = 'now'", "`at` should be a list, each a number."),
    "at empty": (PROBLEM + "[times]\nat = []", "`times` should be a non-empty list of numbers."),
}  # fmt: skip

PREDICT = ("predict", "rho=0.8", "--lr", "0.1")
SIMULATE = ("simulate", "rho=0.8", "--lr", "0.1")
FLAGS = [
    ((*PREDICT, "--start-scale", "1e160"), "`scale` should lie between 0 and 1e150. Found scale = 1e+160."),
    ((*PREDICT, "--start-scale", "nan"), "`scale` should lie between 0 and 1e150."),
    ((*PREDICT, "--evaluations", "9223372036854775807"), "`evaluations` should be at most"),
    ((*PREDICT, "--evaluations", "1000000000"), "to fit in memory. Found 1,000,000,000 evaluations"),
    ((*PREDICT, "--until", "nan"), "`since` should be positive and below `until`."),
    ((*SIMULATE, "--seeds", "10000000000"), "`seeds` should lie between 1 and 100,000,000. Found seeds = 10000000000."),
    ((*SIMULATE, "--d", "1000000000000", "--method", "direct"), "to fit in memory. Found 1,000,000,000,000 dimensions"),
    ((*SIMULATE, "--d", "1000000000000"), "A simulation should end within a year."),
    ((*SIMULATE, "--d", str(10**30)), "`d` should be at most 1e+15. Found d = 1e+30."),
    ((*SIMULATE, "--seeds", "0"), "`seeds` should lie between 1 and 100,000,000."),
]  # fmt: skip


def refused(run, *argv):
    code, out, err = run(*argv)
    assert code == 2, (out, err)
    assert out == ""
    assert not PYTHON.search(err), err
    return err


@pytest.mark.parametrize("case", FILES)
def test_training_files(run, tmp_path, case):
    pytest.importorskip("torch")
    text, sentence = FILES[case]
    (tmp_path / "t.toml").write_text(text)
    assert sentence in refused(run, "train", "t.toml")


@pytest.mark.parametrize("case", PROBLEMS)
def test_problem_files(run, tmp_path, case):
    text, sentence = PROBLEMS[case]
    (tmp_path / "p.toml").write_text(text)
    assert sentence in refused(run, "predict", "--config", "p.toml")


@pytest.mark.parametrize(("argv", "sentence"), FLAGS)
def test_flags(run, argv, sentence):
    assert sentence in refused(run, *argv)


def test_there_are_at_least_forty():
    assert len(FILES) + len(PROBLEMS) + len(FLAGS) >= 40
