"""Public functions: at most ten parameters, an example right after the first sentence, and plain words."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import tiltmeter as tm
from tiltmeter.forecast.kernel.tangent import Tangent

ROOT = Path(__file__).parents[2]
#: Phrases that say nothing to a stranger.
IDIOMS = (
    *("said aloud", "value that would mean nothing", "exact in law", "laws of all", "beyond doubt", "by heart"),
    *("worth a word", "is not to be trusted", "beside one another", "has nothing to say"),
)


def public():
    """Every public function and class, at the top and in the rooms."""
    found = {}
    for name in tm.__all__:
        value = getattr(tm, name)
        inner = [(f"{name}.{one}", getattr(value, one)) for one in getattr(value, "__all__", ())]
        for label, one in inner if inspect.ismodule(value) else [(name, value)]:
            if callable(one) and getattr(one, "__module__", "").startswith("tiltmeter"):
                found[label] = one
    return found


PUBLIC = public()


#: A forecast and advice are asked once, with everything: what is to be trained, for how much, and with which means.
#: A probe says what it does in the user's loop when it fails or takes long; a table of predictions names its columns.
MORE = {"forecast": 12, "train": 12, "advise": 15, "Probe": 12, "predictions.run": 16}


@pytest.mark.parametrize("name", PUBLIC)
def test_at_most_ten_parameters(name):
    """A frozen value may have more fields (`Recipe`, `SGD`): that is what it is for."""
    value = PUBLIC[name]
    if not inspect.isroutine(value) and (dataclasses.is_dataclass(value) or not inspect.isclass(value)):
        return
    taken = [one for one in inspect.signature(value).parameters if one != "self"]
    assert len(taken) <= MORE.get(name, 10), taken


@pytest.mark.parametrize("kind", [*(one for one in PUBLIC.values() if inspect.isclass(one)), Tangent], ids=str)
def test_methods_take_at_most_ten_parameters(kind):
    for name, method in inspect.getmembers(kind, inspect.isroutine):
        if not name.startswith("_") and inspect.isfunction(inspect.unwrap(method)):
            assert len(inspect.signature(method).parameters) <= 11, name  # and `self`


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_comes_before_the_fine_print(name):
    paragraphs = (inspect.getdoc(PUBLIC[name]) or "").split("\n\n")
    examples = [place for place, text in enumerate(paragraphs) if text.startswith(">>>")]
    assert not examples or examples[0] == 1, paragraphs[1]


def test_no_idioms():
    texts = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("[sth]*/*.md"),
        *ROOT.glob("*.md"),
    ]
    for path in texts:
        words = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        assert not [idiom for idiom in IDIOMS if idiom in words], path
