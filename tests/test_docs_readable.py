"""The documentation stays short enough to be read: words, pages, sentences, numbers."""

import inspect
import re
from pathlib import Path

import pytest

import tiltmeter as tm

DOCS = Path(__file__).parents[1] / "docs"
EVERY_PAGE = sorted(
    page
    for page in DOCS.rglob("*.md")
    if page.relative_to(DOCS).parts[0] not in ("_build", "api", "evidence", "gallery")
)
MOST_WORDS, MOST_ON_A_PAGE, MOST_IN_A_SENTENCE, MOST_LONG_SENTENCES = 60_000, 2500, 30, 0.05
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n]*)\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"^```(text printed|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NO_LEADING_ZERO = re.compile(r"(?<![\w.\])*/~-])-?\.\d+\b(?!\.)")


def name_of(page):
    return page.relative_to(DOCS).with_suffix("").as_posix()


def listed(tree):
    """The pages in the tables of contents of a tree."""
    text = (DOCS / f"{tree}.md").read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"^```{toctree}\n(.*?)^```", text, re.M | re.S) for line in block.split("\n")]
    return {re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")}


READ = [
    page
    for page in EVERY_PAGE
    if name_of(page) not in listed("reference") | listed("evidence") | {"reference", "evidence"}
    and page.parent.name != "lab"
]


def prose(text):
    """Paragraphs and items of a list as single lines: no code, tables, headings, formulas or addresses."""
    text = FENCE.sub("\n", text)
    text = re.sub(r"^\$\$.*?\$\$$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<[^>\n]+>", "", re.sub(r"^( {4,}(?=\S)|#|\||!\[|\(\w).*$", "", text, flags=re.MULTILINE))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]+`", "code", re.sub(r"\$[^$\n]+\$", "formula", text))
    text = re.sub(r"\n(?=\s*([-*]|\d+\.) )", "\n\n", text)
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text) if block.strip()]


def sentences(text):
    """Split at a full stop, a question mark or an exclamation mark."""
    return [
        s
        for block in prose(text)
        for s in re.split(r"(?<=[.?!])[*_)\"]*\s+(?=[\"*_(`]*(?:[A-Z0-9]|code\b|formula\b))", block)
        if s
    ]


def long_sentences(text):
    return [s for s in sentences(text) if len(re.findall(r"[^\W_][\w'’.,-]*", s)) > MOST_IN_A_SENTENCE]


def without_leading_zero(text):
    """Numbers such as .5, in prose and in outputs; code and commands may have them."""
    outputs = [line for block in OUTPUT.findall(text) for line in block[1].split("\n") if not line.startswith("$ ")]
    tables = [re.sub(r"`[^`]+`", "", line) for line in FENCE.sub("\n", text).split("\n") if line.startswith("|")]
    return [number for line in [*prose(text), *tables, *outputs] for number in NO_LEADING_ZERO.findall(line)]


def test_the_counters_count():
    text = (
        "# A title\n\nOne `a.b(c)` two. " + "Word " + "word " * 31 + "end.\n\n- A gap of .5 is wrong, v1.5 is not.\n\n"
    )
    text += "```python\nx = .25\n```\n\n```text printed\ngap .75 of 0.5\n```\n"
    assert len(sentences(text)) == 3
    assert len(long_sentences(text)) == 1
    assert without_leading_zero(text) == [".5", ".75"]


def test_all_pages_to_read_hold_at_most_sixty_thousand_words():
    words = {name_of(page): len(page.read_text(encoding="utf-8").split()) for page in READ}
    assert len(words) > 60
    assert sum(words.values()) <= MOST_WORDS, sum(words.values())


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_no_page_is_too_long(page):
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_ON_A_PAGE, "split it along its headings"


def test_few_sentences_are_long():
    texts = [page.read_text(encoding="utf-8") for page in READ]
    every = sum(len(sentences(text)) for text in texts)
    long = [s for text in texts for s in long_sentences(text)]
    assert len(long) <= MOST_LONG_SENTENCES * every, f"{len(long)} of {every}; such as: {long[:3]}"


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_numbers_have_a_leading_zero(page):
    assert without_leading_zero(page.read_text(encoding="utf-8")) == []


def test_every_top_level_name_is_used_on_a_page_outside_the_reference():
    texts = "\n".join(page.read_text(encoding="utf-8") for page in READ)
    names = [name for name in tm.__all__ if not name.startswith("__")]
    assert any(inspect.isfunction(getattr(tm, name)) for name in names)
    assert [name for name in names if not re.search(rf"\btm\.{name}\b", texts)] == []


@pytest.mark.parametrize("page", READ, ids=name_of)
def test_old_words_are_gone(page):
    """Words that had a private meaning here: `clear`, `permutation`, `intervention` and `predicted` replace them."""
    old = re.compile(
        r"\b(?:is|was|are|were|not) shown\b(?! (?:as|to you|in|on|by|below|beside|with))|\b[Tt]old\b|\bdeals?\b"
    )
    old_names = re.compile(r"\b(?:[Ll]aws?|[Cc]ures?|[Rr]eplicas?|wrong yeses)\b")
    lines = prose(page.read_text(encoding="utf-8"))
    assert [match for line in lines for match in [*old.findall(line), *old_names.findall(line)]] == []
