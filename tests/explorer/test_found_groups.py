"""Groups nobody named, from the runs page: what is found, how to go on with it, what is refused, hostile names."""

import json
import shlex
import subprocess
import sys

import pandas as pd
import pytest

import tiltmeter as tm
from discovered_runs import made_run, margins, people
from tiltmeter.cli import main
from tiltmeter.explorer.found_groups import groups_found, python_lines, shell_lines

TABLE = people()
HOSTILE = "<img src=x onerror='window.pwned=1'>"


def run_with_groups(name="cook", table=TABLE):
    return made_run(margins(2000, late=table["job"] == name, hard=table["age"] > 67))


@pytest.fixture
def folder(tmp_path):
    tm.save(run_with_groups(), tmp_path / "mine")
    pd.DataFrame(TABLE).assign(label=["yes", "no"] * 1000).to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def found_in(folder, runs=("mine",), table="people.csv", without=("label",)):
    return groups_found(str(folder), list(runs), table, list(without), tell=lambda _: None)


def test_the_sentences_and_rows_are_those_of_discover(folder):
    answer, discovery = found_in(folder), tm.discover(run_with_groups(), TABLE)
    assert (answer["claim"], answer["licence"]) == (discovery.claim, discovery.licence)
    assert [row["name"] for row in answer["groups"]] == [group.name for group in discovery.groups]
    assert answer["groups"][0]["verdict"] == "clear: worse at the end"


def test_the_lines_to_go_on_find_the_same_groups(folder, tmp_path, monkeypatch):
    answer = found_in(folder)
    monkeypatch.chdir(tmp_path)
    exec(compile(answer["python"], "lines", "exec"), {})  # a program that the page offers runs as it is
    parts = tm.discover(run_with_groups(), TABLE).parts
    assert set(pd.read_csv(tmp_path / "found.csv")["found"]) == set(parts)
    for line in answer["shell"].splitlines():
        assert main(shlex.split(line)[1:]) == 0
    assert (tmp_path / "groups.html").exists()


def test_names_are_quoted_where_a_shell_or_python_would_obey_them(tmp_path):
    run, table, without = tmp_path / "a b; $(reboot)", tmp_path / 'x"; import os.csv', ["--to", "it's"]
    command = shell_lines(run, table, without).splitlines()[0].removeprefix("tiltmeter ")
    code = "import sys, json; print(json.dumps(sys.argv[1:]))"
    words = subprocess.run(
        ["/bin/sh", "-c", f"'{sys.executable}' -c '{code}' {command}"], capture_output=True, text=True, check=True
    )
    expected = ["discover", str(run), "--table", str(table), "--without=--to", "--without=it's"]
    assert json.loads(words.stdout)[:6] == expected
    compile(python_lines([run], table, without), "lines", "exec")


def test_several_seeds_are_searched_together(folder):
    tm.save(run_with_groups(), folder / "second")
    answer = found_in(folder, ("mine", "second"))
    assert answer["licence"].startswith("2 runs: ")
    assert answer["shell"] == ""


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"runs": ["gone"]}, "This run is no longer there."),
        ({"table": "../people.csv"}, "This table is no longer there."),
        ({"without": []}, "Found the label in column 'label': leave it out."),
        ({"without": ["size"]}, "The table has no column 'size' to leave out."),
    ],
)
def test_what_cannot_be_searched_is_one_sentence(folder, asked, message):
    with pytest.raises(ValueError, match=r"^[^\n]*$") as refused:
        found_in(folder, **asked)
    assert message in str(refused.value)


def test_settings_that_are_none_start_no_job(explorer):
    for settings in ({"runs": 3}, {"runs": ["a"], "without": []}, []):
        assert explorer.post("/api/jobs", {"kind": "find groups", "settings": settings}).status == 400


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 390])
def test_hostile_words_of_a_table_stay_text(tmp_path, start_explorer, open_page, width):
    table = {**TABLE, "job": [HOSTILE if job == "cook" else job for job in TABLE["job"]]}
    tm.save(run_with_groups(), tmp_path / "mine")
    pd.DataFrame(table).rename(columns={"job": "<b>job</b>"}).to_csv(tmp_path / "people.csv", index=False)
    with start_explorer(tmp_path) as explorer:
        page = open_page(explorer.address + "#runs?run=mine", width=width)
        page.get_by_role("button", name="Find groups nobody named").click()
        page.wait_for_selector("#found-groups table")
        assert f"<b>job</b> = {HOSTILE}" in page.locator("#found-groups").inner_text()
        assert page.locator("#found-groups img, #found-groups b").count() == 0
        assert page.evaluate("() => window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#found-groups h3").inner_text() == "In mine"
        page.locator("#found-without").fill("age, nothing")
        page.get_by_role("button", name="Find groups nobody named").click()
        page.get_by_text("The table has no column 'nothing' to leave out.").wait_for()
        page.close()
