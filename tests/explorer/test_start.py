"""Start: a table becomes a task; and every page opens without an error."""

import asyncio
import importlib.util
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discovered_runs
import tiltmeter as tm
from tiltmeter.explorer import state
from tiltmeter.explorer.settings import ALL_TABLES, LARGEST_TABLE, PLACE
from tiltmeter.explorer.single_file import page_files
from tiltmeter.explorer.state import Worker
from tiltmeter.explorer.tables import free_name, table_columns, table_rows, table_written
from tiltmeter.explorer.worker_process import sentence_of

_spec = importlib.util.spec_from_file_location("made_runs", Path(__file__).with_name("made_runs.py"))
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)


def people(count=400, seed=0):
    """Loans that women get less often at the same income."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], count)
    income = rng.normal(30, 8, count).round(1)
    approved = np.where(income + 6 * (sex == "m") + rng.normal(0, 3, count) > 32, "yes", "no")
    return pd.DataFrame({"sex": sex, "income": income, "debt": rng.normal(10, 3, count).round(1), "approved": approved})


@pytest.fixture(scope="module")
def trusted(tmp_path_factory, start_explorer):
    with start_explorer(tmp_path_factory.mktemp("start") / "runs", "--allow-runs") as found:
        yield found


def sent(explorer, name, body, kind="application/octet-stream", origin=None):
    origin = origin or f"http://127.0.0.1:{explorer.port}"
    return explorer.ask(f"/api/table?name={name}", "POST", body, Origin=origin, Content_Type=kind)


def test_a_table_is_brought_guessed_and_forecast(trusted):
    answer = sent(trusted, "people.csv", people().to_csv(index=False).encode())
    assert answer.status == 200, answer.text
    assert trusted.json("/api/tables") == [{"table": f"{PLACE}/people.csv", "name": f"{PLACE}/people.csv"}]
    told = trusted.json(f"/api/columns?table={PLACE}/people.csv")
    assert (told["label"], told["positive"], told["group"], told["kind"]) == ("approved", "yes", "sex", "benefit")
    assert told["guessed"] == ["label", "positive label", "group", "question"]
    assert [one["rows"] for one in told["sizes"]] == people()["sex"].value_counts().sort_index().tolist()
    other = trusted.json(f"/api/columns?table={PLACE}/people.csv&label=sex&group=approved")
    assert (other["label"], other["group"]) == ("sex", "approved")
    written = trusted.post("/api/task", {"table": f"{PLACE}/people.csv", "kind": "burden"})
    source = f"file/{PLACE}/people.toml"
    assert written.text == f'{{"source": "{source}"}}'
    text = (trusted.folder / PLACE / "people.toml").read_text()
    assert 'kind = "burden"  # benefit' in text
    pytest.importorskip("torch")
    found = trusted.json(f"/api/what-if?source={source}")
    assert found["groups"] == ["f", "m"]
    assert found["lr"] == 0.001  # the rate of AdamW can be changed, too


def test_nothing_is_written_without_leave(explorer):
    for answer in (sent(explorer, "people.csv", b"a,b\n1,2\n"), explorer.post("/api/task", {"table": "people.csv"})):
        assert answer.status == 403
        assert "--allow-runs" in answer.text
    assert not (explorer.folder / PLACE).exists()


def test_what_is_no_table_is_refused(trusted):
    there = set((trusted.folder / PLACE).glob("*")) if (trusted.folder / PLACE).exists() else set()
    assert sent(trusted, "people.exe", b"x").status == 400
    assert sent(trusted, "people.csv", b"x", kind="text/plain").status == 415
    assert sent(trusted, "people.csv", b"x", origin="http://evil.example").status == 403
    headers = {"Origin": f"http://127.0.0.1:{trusted.port}", "Content_Type": "application/octet-stream"}
    huge = trusted.ask("/api/table?name=a.csv", "POST", None, Content_Length=str(LARGEST_TABLE + 1), **headers)
    assert huge.status == 413
    now = set((trusted.folder / PLACE).glob("*")) if (trusted.folder / PLACE).exists() else set()
    assert now == there
    for path in ("/api/columns?table=../../etc/passwd", "/api/columns?table=none.csv"):
        assert trusted.ask(path).text == '{"error":"This table is no longer there."}'


@pytest.mark.parametrize("given", ["../../evil.csv", ".hidden.csv", "a b<script>.csv", "x" * 300 + ".csv", "-rf.csv"])
def test_names_of_files_stay_in_the_folder(tmp_path, given):
    name = free_name(tmp_path, given)
    assert re.fullmatch(r"\w[\w.-]{0,79}", name, re.ASCII)
    assert (tmp_path / name).resolve().parent == tmp_path.resolve()


def test_a_name_that_is_taken_gets_a_number(tmp_path):
    (tmp_path / "a.csv").write_text("")
    assert free_name(tmp_path, "a.csv") == "a-2.csv"


def test_links_and_runs_are_not_tables(tmp_path):
    people(50).to_csv(tmp_path / "real.csv", index=False)
    (tmp_path / "link.csv").symlink_to("/etc/hostname")
    _made.write(tmp_path / "run", evaluations=2)
    (tmp_path / "run" / "points.csv").write_text("a,b\n")
    assert [one["name"] for one in table_rows(str(tmp_path))] == ["real.csv"]


def test_an_existing_training_file_is_not_overwritten(tmp_path):
    people(50).to_csv(tmp_path / "p.csv", index=False)
    (tmp_path / "p.toml").write_text("mine")
    assert table_written(str(tmp_path), "p.csv")["source"] == "file/p-2.toml"
    assert (tmp_path / "p.toml").read_text() == "mine"
    with pytest.raises(ValueError, match="`kind` should be benefit or burden"):
        table_written(str(tmp_path), "p.csv", kind="neither")
    assert table_columns(str(tmp_path), "p.csv")["missing"] == 0


def test_all_tables_that_a_page_brings_have_one_limit(start_explorer, tmp_path):
    """What is there counts, and what is being sent; a part of a table is not kept."""
    with start_explorer(tmp_path / "runs", "--allow-runs") as found:
        assert sent(found, "first.csv", people(50).to_csv(index=False).encode()).status == 200
        place = tmp_path / "runs" / PLACE
        with (place / "large.csv").open("wb") as file:
            file.truncate(ALL_TABLES)
        answer = sent(found, "second.csv", b"a,b\n1,2\n")
        assert answer.status == 413
        assert "Tables that the page brings take at most 512 MB together" in answer.text
        (place / "large.csv").unlink()
        assert sent(found, "second.csv", b"a,b\n1,2\n").status == 200
        assert sorted(path.name for path in place.iterdir()) == ["first.csv", "second.csv"]


class Slow(Worker):
    """A worker whose process takes a minute; it counts how often it is asked and ended."""

    def __init__(self):
        super().__init__()
        self.done, self.ended = 0, 0

    async def _do(self, job, hear, settings):  # noqa: ARG002
        self.done += 1
        await asyncio.sleep(settings["seconds"])
        return job

    def stop(self):
        self.ended += 1


def in_a_loop(work):
    """In a thread of its own: a browser that was opened before keeps a loop running in this one."""
    with ThreadPoolExecutor() as pool:
        return pool.submit(asyncio.run, work).result()


def test_a_question_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(state, "DEADLINE", 0.05)
    with pytest.raises(ValueError, match=r"This took more than 0 seconds and was given up"):
        in_a_loop(Slow().answer("columns", seconds=60))


def test_a_question_does_not_wait_for_good(monkeypatch):
    monkeypatch.setattr(state, "WAIT", 0.05)

    async def two():
        worker = Slow()
        first = asyncio.create_task(worker.answer("first", seconds=0.5))
        await asyncio.sleep(0.01)
        with pytest.raises(ValueError, match="Other questions took all of"):
            await worker.answer("second", seconds=0)
        return await first

    assert in_a_loop(two()) == "first"


def test_who_asks_the_same_at_the_same_time_shares_the_answer():
    async def thirty():
        worker = Slow()
        found = await asyncio.gather(*(worker.answer("judgement", seconds=0.05) for _ in range(30)))
        return worker.done, set(found)

    assert in_a_loop(thirty()) == (1, {"judgement"})


def test_a_process_that_takes_too_long_is_ended(monkeypatch, tmp_path):
    """A real process, which then answers the next question as if nothing had happened."""
    monkeypatch.setattr(state, "DEADLINE", 30.0)

    async def ended():
        worker = Worker()
        assert await worker.answer("tables", root=str(tmp_path)) == []
        process = worker._process
        monkeypatch.setattr(state, "DEADLINE", 0.0)
        with pytest.raises(ValueError, match="was given up"):
            await worker.answer("rows", root=str(tmp_path))
        await process.wait()
        monkeypatch.setattr(state, "DEADLINE", 30.0)
        again = await worker.answer("tables", root=str(tmp_path))
        worker.stop()
        return process.returncode, again

    assert in_a_loop(ended()) == (-9, [])


def test_what_libraries_say_is_no_answer(capfd):
    assert sentence_of(ValueError("`rho` should lie in (0, 1).")) == "`rho` should lie in (0, 1)."
    for error in (
        ValueError("All-NaN slice encountered"),
        IndexError("index 3 is out of bounds for axis 0."),
        KeyError("x"),
    ):
        assert sentence_of(error) == "This cannot be worked out here. `tiltmeter show` on the command line says more."
    assert "All-NaN slice encountered" in capfd.readouterr().err


def test_names_of_the_library_in_the_pages_exist():
    """The page writes programs: every `tm.name` in them is one."""
    names = set(re.findall(r"\btm((?:\.[A-Za-z_]\w*)+)", "\n".join(page_files().values())))
    assert names
    for name in names:
        found = tm
        for part in name[1:].split("."):
            found = getattr(found, part)


def test_every_page_opens_without_an_error(trusted, open_page):
    _made.write(trusted.folder / "made", evaluations=12)
    page = open_page(trusted.address + "#start")
    page.wait_for_selector("#table-file")
    page.goto(trusted.address + "#runs")
    page.wait_for_selector("#chart-runs svg .mark-line path", state="attached")
    assert page.get_by_role("button", name="Find groups nobody named").is_hidden()  # this run kept no points
    table = discovered_runs.people(1000)
    pd.DataFrame(table).to_csv(trusted.folder / "cooks.csv", index=False)
    late = discovered_runs.margins(1000, late=table["job"] == "cook")
    tm.save(discovered_runs.made_run(late), trusted.folder / "cooks")
    page.goto(trusted.address + "#runs?run=cooks")
    page.locator("#found-table").focus()
    page.locator("#found-table option[value='cooks.csv']").wait_for(state="attached")
    page.locator("#found-table").select_option("cooks.csv")
    page.get_by_role("button", name="Find groups nobody named").click()
    page.locator("#found-claim", has_text="The group job = cook").wait_for()
    for name in ("theory", "studies", "lessons"):
        page.goto(f"{trusted.address}#{name}")
        page.wait_for_selector("h1")
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_from_a_file_to_a_report_by_keyboard(tmp_path, start_explorer, open_page, width):
    pytest.importorskip("torch")
    people(2000).to_csv(tmp_path / "loans.csv", index=False)
    with start_explorer(tmp_path / "runs", "--allow-runs") as explorer:
        page = open_page(explorer.address, width=width)
        page.wait_for_selector("#table-file")
        page.locator("#table-file").focus()
        page.set_input_files("#table-file", tmp_path / "loans.csv")
        page.wait_for_selector("#task-label")
        page.get_by_role("button", name="Forecast").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#forecast-key .legend", state="attached")
        page.get_by_role("button", name="Train it").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Report").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        said = page.locator("#why").text_content()
        report = page.get_by_role("link", name="Report").get_attribute("href")
        page.goto(explorer.address.rstrip("/") + report)
        shown = (
            page.locator("h1")
            .first.inner_text()
            .replace("\N{NO-BREAK SPACE}", " ")
            .replace("\N{NARROW NO-BREAK SPACE}", " ")
        )
        assert said.startswith(shown.rstrip(".").replace("has the", "will have the"))
        page.close()
