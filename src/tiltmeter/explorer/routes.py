"""Routes: every address that the server answers; what writes to the folder only if `--allow-runs` was given."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tiltmeter.explorer.lessons import lesson_named, lessons
from tiltmeter.explorer.run_rows import address_of, has_run, run_folder
from tiltmeter.explorer.settings import ALL_TABLES, LARGEST_TABLE, PLACE, UPLOAD, Settings
from tiltmeter.explorer.single_file import kind_of, page_files, single_file
from tiltmeter.explorer.state import KINDS, Cancelled, State
from tiltmeter.explorer.tables import ENDINGS, free_name
from tiltmeter.explorer.theory_state import presets
from tiltmeter.explorer.what_if_sources import SAVED
from tiltmeter.plugins import PARTS, is_installed
from tiltmeter.record.directory.journal import CURVES
from tiltmeter.shown_text import visible
from tiltmeter.version import __version__

#: The parts of the page in their order; the evidence of experiments is there if tiltmeter-lab is.
PAGES = ("start", "runs", "forecast", "theory")
#: Pages that the laboratory brings -> the part of it that answers them.
OF_THE_LAB = {"studies": "studies", "verdicts": "evidence"}
#: The most runs that are asked about at once, and the most groups that can be bent.
MOST_RUNS, MOST_GROUPS = 64, 64
#: A report brings its own scripts, listed by their hashes in its own policy; here it gets no rights of this page.
REPORT_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"
READ_ONLY = "This explorer only reads. Start it with `tiltmeter explore --allow-runs` to"
#: What can be chosen of a table; `kind` only for the training file that is made of it.
CHOICES = ("label", "positive", "group", "kind")


class Question(NamedTuple):
    """A question that a worker answers: which worker, which job, and which words of the address it is told.

    `runs` tells it the chosen runs, too. A refusal has the status 200 where it is an ordinary answer.
    """

    worker: str
    job: str
    words: tuple[str, ...] = ()
    runs: bool = False
    refusal_status: int = 400

    async def __call__(self, request: Request) -> Response:
        state, query = state_of(request), request.query_params
        settings: dict[str, Any] = {name: query.get(name, "") for name in self.words}
        if self.runs:
            settings["runs"] = chosen_runs(request)
        worker = getattr(state, self.worker)
        if self.runs and any(is_heavy(state.settings.folder, run) for run in settings["runs"]):
            worker = state.heavy
        return await answered(worker.answer(self.job, root=str(state.settings.folder), **settings), self.refusal_status)


QUESTIONS = {
    "/api/alike": Question("reader", "alike", ("run",)),
    "/api/nowcasts": Question("analyst", "nowcasts", ("curve",), runs=True),
    "/api/summaries": Question("analyst", "summaries", runs=True),
    "/api/judgement": Question("analyst", "judgement", ("curve",), runs=True, refusal_status=200),
    "/api/studies": Question("analyst", "studies"),
    "/api/study": Question("analyst", "study", ("study", "across", "up", "response")),
    "/api/shares": Question("analyst", "study shares", ("study", "response"), refusal_status=200),
    "/api/tables": Question("reader", "tables"),
    "/api/sources": Question("reader", "sources"),
    "/api/verdicts": Question("analyst", "verdicts"),
}


def routes() -> list[Route]:
    return [
        Route("/", home),
        Route("/page/{name:path}", page_file),
        Route("/vega.js", vega),
        Route("/lesson.html", lesson_file),
        Route("/report", report),
        *(Route(address, question.__call__) for address, question in QUESTIONS.items()),
        Route("/api/start", start),
        Route("/api/theory", theory),
        Route("/api/runs", rows),
        Route("/api/curves", curves),
        Route("/api/columns", columns),
        Route("/api/what-if", what_if),
        Route("/api/forecast", forecast),
        Route("/api/picture", picture),
        Route(UPLOAD, upload, methods=["POST"]),
        Route("/api/task", task, methods=["POST"]),
        Route("/api/jobs", jobs, methods=["GET", "POST"]),
        Route("/api/cancel", cancel, methods=["POST"]),
    ]


def state_of(request: Request) -> State:
    """What the server holds."""
    state: State = request.app.state.explorer
    return state


async def answered(work: Awaitable[Any], refusal_status: int = 400) -> Response:
    """What a worker answers, as JSON; what it refuses, as one sentence."""
    try:
        return Response(json.dumps(await work), media_type="application/json")
    except ValueError as error:
        return refused(str(error), refusal_status)
    except Cancelled as error:
        return refused(str(error), 503)


def refused(sentence: str, status: int = 400) -> Response:
    """One sentence."""
    return JSONResponse({"error": visible(sentence)}, status)


def refused_change(error: Exception, wanted: str) -> Response:
    """The sentence of an error that has one; else what the request should have held."""
    return refused(str(error) if type(error) is ValueError else wanted)


async def sent(request: Request) -> Any:
    """The JSON of a request; a ValueError for what could not be told again: infinities, halves of characters."""
    body = await request.body()
    try:
        value = json.loads(body, parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("A change should be asked for in plain JSON.") from None
    return value


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def chosen_runs(request: Request) -> list[str]:
    return request.query_params.getlist("run")[:MOST_RUNS]


async def home(_: Request) -> Response:
    return Response(page_files()["index.html"], media_type="text/html")


async def page_file(request: Request) -> Response:
    name = request.path_params["name"]
    text = page_files().get(name)
    if text is None:
        return PlainTextResponse("There is no such file.", 404)
    return Response(text, media_type=kind_of(name))


async def vega(request: Request) -> Response:
    return Response(await state_of(request).drawing_library(), media_type="text/javascript")


async def start(request: Request) -> Response:
    """What the page needs to know once; most pages will draw, so the library for it is made meanwhile."""
    state_of(request).prepare()
    settings = state_of(request).settings
    told: dict[str, Any] = {
        "version": __version__,
        "folder": visible(settings.folder.name),
        "allow_runs": settings.allow_runs,
        "first": "runs" if has_run(settings.folder) else "start",
        "pages": [*PAGES, *(page for page, part in OF_THE_LAB.items() if is_installed(PARTS, part)), "lessons"],
        "presets": presets(),
        "lessons": [lesson.to_json() for lesson in lessons()],
    }
    return JSONResponse(told)


async def theory(request: Request) -> Response:
    return await answered(state_of(request).theorist.answer("theory", query=dict(request.query_params)))


async def lesson_file(request: Request) -> Response:
    """A lesson, or the theory page in this state, as one file."""
    state, query = state_of(request), request.query_params
    try:
        if "lesson" in query:
            lesson = lesson_named(query["lesson"])
            name, title, pages = lesson.name, lesson.title, ["lessons", "theory"]
            states = [step.state for step in lesson.steps]
            embedded: dict[str, Any] = {"lessons": [lesson.to_json()]}
        else:
            name, title, pages, states = "lesson", "A lesson with tiltmeter", ["theory"], [str(query)]
            embedded = {"query": str(query)}
        answers = {one: await state.theorist.answer("theory", query=dict(parse_qsl(one))) for one in states}
    except ValueError as error:
        return refused(str(error))
    page = single_file(title, {**embedded, "pages": pages, "answers": answers})
    attached = {"Content-Disposition": f'attachment; filename="{name}.html"'}
    return Response(page, media_type="text/html", headers=attached)


async def report(request: Request) -> Response:
    """The report of the chosen runs."""
    state = state_of(request)
    try:
        page = await state.heavy.answer("report", root=str(state.settings.folder), runs=chosen_runs(request))
    except (ValueError, Cancelled) as error:
        return refused(str(error))
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


async def rows(request: Request) -> Response:
    return await answered(state_of(request).rows(request.query_params.get("known", "")))


async def curves(request: Request) -> Response:
    """The curves of all shown runs in one answer; `known` are the versions that the page has."""
    state, query, runs = state_of(request), request.query_params, chosen_runs(request)
    known = dict(zip(runs, query.getlist("known"), strict=False))
    return await answered(_curves(state, runs, query.get("curve", ""), known))


async def _curves(state: State, runs: list[str], curve: str, known: dict[str, str]) -> dict[str, Any]:
    """Runs that take long to read do not hold up the others."""
    folder = state.settings.folder
    heavy = [run for run in runs if is_heavy(folder, run)]
    parts = {state.reader: [run for run in runs if run not in heavy], state.heavy: heavy}
    asked = []
    for worker, some in parts.items():
        if some:
            told = {run: known[run] for run in some if run in known}
            asked.append(worker.answer("curves", root=str(folder), runs=some, curve=curve, known=told))
    found: dict[str, Any] = {}
    for part in await asyncio.gather(*asked):
        found.update(part)
    return found


#: Files of curves with more bytes are read by a process of their own.
HEAVY = 2**23


def is_heavy(folder: Path, run: str) -> bool:
    """Whether a run takes seconds to read; False where there is none of this name."""
    path = run_folder(folder).get(run)
    try:
        return path is not None and (path / CURVES).stat().st_size > HEAVY
    except OSError:
        return False


async def columns(request: Request) -> Response:
    query = request.query_params
    given = {name: query[name] for name in CHOICES[:-1] if query.get(name)}
    return await answered(_of_table(state_of(request), "columns", {"table": query.get("table", ""), **given}))


async def _of_table(state: State, job: str, given: dict[str, Any]) -> Any:
    """The answer of a process that reads nothing but tables."""
    return await state.table_reader.answer(job, root=str(state.settings.folder), **given)


async def what_if(request: Request) -> Response:
    """What can be bent of a source."""
    state = state_of(request)
    source = request.query_params.get("source", "digits")
    return await answered(state.forecaster.answer("what if", source=source, **own_settings(state.settings)))


async def forecast(request: Request) -> Response:
    """A saved forecast as it is; else the forecast for these settings of the sliders."""
    state, query = state_of(request), request.query_params
    source, curve = query.get("source", "digits"), query.get("curve", "")
    own = own_settings(state.settings)
    if source.startswith(SAVED):
        return await answered(state.reader.answer("saved forecast", root=own["root"], source=source, curve=curve))
    lists = {name: query[name].split(",") if query.get(name) else [] for name in ("weights", "shares")}
    try:
        bend = checked_bend({**query, **lists})
    except ValueError as error:
        return refused(str(error))
    full = query.get("full") == "yes"
    return await answered(state.forecaster.answer("forecast", source=source, bend=bend, full=full, curve=curve, **own))


def own_settings(settings: Settings) -> dict[str, Any]:
    """What the server knows and no page may say."""
    return {"root": str(settings.folder), "reader": settings.reader, "fetch": settings.allow_runs}


def checked_bend(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the sliders as numbers; the sentence says what is missing."""
    try:
        bend = {
            "lr": float(given["lr"]) if given.get("lr") not in (None, "") else None,
            "steps": int(float(given["steps"])),
            "weights": [float(one) for one in given.get("weights") or []],
            "shares": [float(one) for one in given.get("shares") or []],
            "law": str(given.get("law") or ""),
        }
        numbers = [bend["lr"] or 0.0, *bend["weights"], *bend["shares"]]  # type: ignore[misc]
        if len(numbers) > 1 + 2 * MOST_GROUPS or any(one - one != 0 for one in numbers):
            raise ValueError
    except (ValueError, KeyError, TypeError, OverflowError):
        raise ValueError(
            "A forecast should have numbers `lr` and `steps`, and `weights` and `shares` of the groups or none."
        ) from None
    return bend


async def picture(request: Request) -> Response:
    state, query = state_of(request), request.query_params
    number = query.get("number", "")
    words: dict[str, Any] = {name: query.get(name, "") for name in ("name", "variant")}
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else -1
    return await answered(state.analyst.answer("picture", root=str(state.settings.folder), number=place, **words))


async def upload(request: Request) -> Response:
    """Keep a table in the folder, under a name of ours; a part of one is not kept."""
    settings = state_of(request).settings
    if not settings.allow_runs:
        return refused(f"{READ_ONLY} bring a table and to train.", 403)
    folder = settings.folder / PLACE
    try:
        name = free_name(folder, request.query_params.get("name", ""))
    except ValueError as error:
        return refused(str(error))
    aside = folder / f".{secrets.token_hex(8)}.aside"
    state = state_of(request)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        kept = sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.lower().endswith(ENDINGS))
        with aside.open("xb") as file:
            async for part in request.stream():
                state.uploading += len(part)
                if kept + state.uploading > ALL_TABLES:
                    return refused(
                        f"Tables that the page brings take at most {ALL_TABLES // 2**20:,} MB together. Remove some "
                        f"from {PLACE}.",
                        413,
                    )
                file.write(part)
        os.link(aside, folder / name)  # unlike a rename, this never replaces a file
    except OSError as error:
        return refused(f"The table could not be kept: {error.strerror or error}.", 507)
    except ClientDisconnect:
        return refused(f"At most {LARGEST_TABLE // 2**20} MB are read.", 413)
    finally:
        with suppress(OSError):
            state.uploading -= aside.stat().st_size
            aside.unlink()
    return JSONResponse({"table": address_of(f"{PLACE}/{name}".encode())})


async def task(request: Request) -> Response:
    """Write the training file of a table."""
    state = state_of(request)
    if not state.settings.allow_runs:
        return refused(f"{READ_ONLY} bring a table and to train.", 403)
    try:
        change = await sent(request)
        given = {"table": str(change["table"]), **{name: str(change[name]) for name in CHOICES if change.get(name)}}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return refused_change(error, "A task should name its table.")
    return await answered(_of_table(state, "task", given))


async def jobs(request: Request) -> Response:
    """GET: all jobs. POST: start one."""
    state = state_of(request)
    if request.method == "GET":
        return JSONResponse([job.to_json() for job in state.jobs.all()])
    try:
        change = await sent(request)
        kind, settings = str(change["kind"]), change["settings"]
        if KINDS.get(kind) and not state.settings.allow_runs:
            return refused(f"{READ_ONLY} train and to run experiments.", 403)
        own = own_settings(state.settings)
        if kind == "run quick":
            settings, own = {"name": str(settings["name"])}, {"root": own["root"]}
        elif kind == "find groups":
            lists = {name: [str(one) for one in settings[name][:MOST_RUNS]] for name in ("runs", "without")}
            settings, own = {**lists, "table": str(settings["table"])}, {"root": own["root"]}
        elif kind in KINDS:
            settings = {"source": str(settings["source"]), "bend": checked_bend(settings)}
        return JSONResponse(state.jobs.start(kind, settings, own).to_json())
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        return refused_change(error, "A job should have a kind and settings.")


async def cancel(request: Request) -> Response:
    state = state_of(request)
    try:
        return JSONResponse(state.jobs.cancel(int((await sent(request))["number"])).to_json())
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        return refused_change(error, "Say which job to cancel.")
