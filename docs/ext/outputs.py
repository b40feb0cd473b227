"""Outputs: what every code block of the documentation prints, stored in `docs/outputs.json` and shown below the block.

`python docs/ext/outputs.py` runs the pages whose blocks have changed, `--all` runs every page; both store what was
printed and end with 1 if `--all` found another output than the one stored. The site shows stored outputs only: a block
that was changed since is a warning, which fails the build. `docs/quick_blocks.json` says how many blocks of each page
come before the first one that takes 2 s; the quick tests run only those, until a block of the page changes. Lines with
`assert` are run, but not shown. Seconds, paths, versions and addresses in memory are masked.
"""

import ast
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
STORE = DOCS / "outputs.json"
QUICK = DOCS / "quick_blocks.json"
MOST_SECONDS = 2.0
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
RUN = ("python", "console", "toml")
PRINTED = "text printed"
MOST_LINES = 25
MASKS = (
    (re.compile(r"\b\d[\d,.]* (s|ms|seconds|minutes)\b"), r"… \1"),
    (re.compile(r"… s, [\d.]+ trainings"), "… s, … trainings"),  # a price that was timed
    (re.compile(r"(?<![\w.])/(?:tmp|home|root|var|work|Users)/[\w./+-]*"), "…"),
    (re.compile(r"\b(tiltmeter|torch|numpy) \d+\.\d+[\w.+]*"), r"\1 …"),
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (re.compile(r"'(train_runtime|train_\w+_per_second)': '[^']*'"), r"'\1': '…'"),  # of transformers
)


def pages() -> list[Path]:
    """The pages whose blocks are run, as the tests run them."""
    folders = [DOCS, *(DOCS / part for part in ("start", "tutorials", "howto", "lab"))]
    return sorted(page for folder in folders for page in folder.glob("*.md"))


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


def hashes(text: str) -> list[str]:
    """A hash for each Python block of a page, of all blocks up to it: they share one namespace."""
    whole, made = hashlib.sha256(), []
    for match in FENCE.finditer(text):
        if match[1] in RUN:
            whole.update(f"{match[1]}\n{match[3]}".encode())
            if match[1] == "python":
                made.append(whole.hexdigest()[:16])
    return made


def whole_hash(text: str) -> str:
    """One hash of everything on a page that is run, with what its commands print there."""
    run = [f"{match[1]}\n{match[3]}" for match in FENCE.finditer(text) if match[1] in RUN]
    return hashlib.sha256("".join(run).encode()).hexdigest()[:16]


def quick_blocks(name: str, text: str) -> int:
    """How many blocks of a page the quick tests run: all, unless a later one is slow and none has changed since."""
    stored_hash, count = json.loads(QUICK.read_text(encoding="utf-8")).get(name, ("", 0))
    return count if stored_hash == whole_hash(text) else sum(match[1] in RUN for match in FENCE.finditer(text))


def masked(output: str) -> str:
    """The output without what differs from run to run."""
    for pattern, replacement in MASKS:
        output = pattern.sub(replacement, output)
    return "\n".join(line.rstrip() for line in output.rstrip().splitlines())


def executed(text: str) -> tuple[dict[str, str], list[float]]:
    """Hash -> output of each Python block, and the seconds of each block; run in an empty folder and a new process.

    Seconds are those of the processor, here and in processes that have ended, so that a busy machine changes nothing.
    """
    import scipy.stats  # noqa: F401  imports that many blocks share are no part of their seconds
    import torch
    import xarray  # noqa: F401

    from tiltmeter.cli import main

    torch.manual_seed(0)  # not every page sets a seed, and outputs should stay the same
    namespace: dict[str, Any] = {"__name__": "page"}
    outputs, order, seconds = {}, iter(hashes(text)), []
    for match in FENCE.finditer(text):
        language, code, printed = match[1], match[3], io.StringIO()
        if language not in RUN:
            continue
        start = sum(os.times()[:4])
        with contextlib.redirect_stdout(printed):
            if language == "python":
                exec(compile(code, "page", "exec"), namespace)
                outputs[next(order)] = masked(printed.getvalue())
            elif language == "toml":
                Path(re.match(r"# ([\w.-]+)\n", code)[1]).write_text(code, encoding="utf-8")
            elif language == "console":
                for command in re.findall(r"^\$ tiltmeter ([^\n]*)", code, re.MULTILINE):
                    main(shlex.split(command, comments=True))
        seconds.append(sum(os.times()[:4]) - start)
    return outputs, seconds


def without_asserts(code: str) -> str:
    """The code as it is shown: statements with `assert` at its top level are left out."""
    lines = code.splitlines()
    for statement in reversed(ast.parse(code).body):
        if isinstance(statement, ast.Assert):
            del lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(lines).strip("\n")


def shown(text: str, outputs: dict[str, str]) -> tuple[str, int]:
    """The page with outputs below the blocks that print, and how many blocks have none stored."""
    order, missing = iter(hashes(text)), 0
    followed = [match[1] + match[2] for match in FENCE.finditer(text)][1:] + [""]
    place = iter(followed)

    def with_output(match: re.Match[str]) -> str:
        nonlocal missing
        following = next(place)
        if match[1] != "python":
            return match[0]
        key = next(order)
        missing += key not in outputs
        code = without_asserts(match[3])
        block = f"```python\n{code}\n```\n" if code else ""
        lines = [] if following == PRINTED else outputs.get(key, "").splitlines()
        kept = [*lines[:MOST_LINES], "..."] if len(lines) > MOST_LINES + 1 else lines
        return block + (f"\n```{{code-block}} text\n:class: output\n\n{chr(10).join(kept)}\n```\n" if kept else "")

    return FENCE.sub(with_output, text), missing


def stored() -> dict[str, dict[str, str]]:
    """Page -> hash -> output."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}


def stale(store: dict[str, dict[str, str]]) -> list[Path]:
    """The pages with a block whose output is not stored."""
    return [
        page for page in pages() if set(hashes(page.read_text(encoding="utf-8"))) != set(store.get(name_of(page), {}))
    ]


def run(page: Path) -> tuple[dict[str, str], list[float]]:
    """The outputs of a page and the seconds of its blocks, in a new process and an empty folder."""
    own = {"COLUMNS": "120", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--page", str(page)]
        done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name_of(page)} does not run:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def update(everything: bool) -> int:
    """Run the pages and store what they print; 1 if another output was stored for the same code."""
    before = stored()
    chosen, differ = pages() if everything else stale(before), []
    kept = {name_of(page): before.get(name_of(page), {}) for page in pages()}
    for page in chosen:
        name = name_of(page)
        print(name, file=sys.stderr, flush=True)
        kept[name], seconds = run(page)
        _store_quick(name, page.read_text(encoding="utf-8"), seconds)
        differ += [name for key, output in kept[name].items() if before.get(name, {}).get(key, output) != output]
        text = json.dumps({page: kept[page] for page in sorted(kept) if kept[page]}, indent=1, ensure_ascii=False)
        STORE.write_text(text + "\n", encoding="utf-8")
    for name in dict.fromkeys(differ):
        print(f"{name} prints something else than was stored.", file=sys.stderr)
    return 1 if differ else 0


def _store_quick(name: str, text: str, seconds: list[float]) -> None:
    """Store how many blocks come before the first slow one; of unchanged blocks this stays as it was measured first."""
    counts = json.loads(QUICK.read_text(encoding="utf-8")) if QUICK.exists() else {}
    if counts.get(name, [""])[0] != whole_hash(text):
        slow = [number for number, taken in enumerate(seconds) if taken > MOST_SECONDS]
        counts[name] = [whole_hash(text), min([*slow, len(seconds)])]
        lines = ",\n".join(f"{json.dumps(page)}: {json.dumps(counts[page])}" for page in sorted(counts))
        QUICK.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _add(app: Any, name: str, source: list[str]) -> None:
    from sphinx.util import logging

    if (DOCS / f"{name}.md") in app.config.executed_pages:
        source[0], missing = shown(source[0], stored().get(name, {}))
        if missing:
            logging.getLogger(__name__).warning("%s: %d blocks have no stored output: `make docs`", name, missing)


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("executed_pages", pages(), "")
    app.connect("source-read", _add, priority=900)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--page"]:
        made = executed(Path(sys.argv[2]).read_text(encoding="utf-8"))
        print("\n" + json.dumps(made))
    else:
        sys.exit(update("--all" in sys.argv))
