"""Runs made for the tests of the explorer, well-meant and hostile."""

import json

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter.record import Recorder
from tiltmeter.record.directory.atomic_files import sealed_line


def write(path, evaluations=5, seed=0, groups=("a", "b"), lr=0.1, end=True):
    recorder = Recorder(
        path, clock="step", origin=tm.record.Origin("example", settings={"lr": lr, "seed": seed}, seeds=(seed,))
    )
    for step in range(1, evaluations + 1):
        values = [1.0 / step, 0.4 + 0.01 * seed]
        recorder.append(step, {"loss": xr.DataArray(values, dims="group", coords={"group": list(groups)})})
    if end:
        recorder.close()
    return recorder


def day(path, evaluations=100_000):
    """A day's run, its lines written at once; its two groups cross once, at evaluation 14,484."""
    write(path, evaluations=1)
    steps = np.arange(2, evaluations + 1)
    a, b = np.exp(-steps / 9e3) + 1e-7 * np.sin(steps), np.full(len(steps), 0.2)
    lines = [
        sealed_line(
            json.dumps(
                {"kind": "evaluation", "time": int(s), "values": {"loss": [x, y]}}, separators=(",", ":")
            ).encode()
        )
        for s, x, y in zip(steps, a, b, strict=True)
    ]
    with (path / "curves.jsonl").open("ab") as file:
        file.writelines(lines)
    (path / "end.json").unlink()
    return steps, np.stack([a, b], 1)


HOSTILE = [
    "<script>window.pwned = 1</script>", "<img src=x onerror='window.pwned=1'>", "\"><svg onload=window.pwned=1>", "';window.pwned=1;\"",
    "${window.pwned=1}", "{{7*7}}", "a\nb", "a\x1b[31m", "\u202egnp", "..", "%2e%2e", "con:aux", "a&run=b", "a#b", "a?b=c", " lead", "ünï", "日本",
    "__proto__", "constructor", "a\\b", "a'b", "a`b", "*", "~0", "$(reboot)", "-rf", "javascript:window.pwned=1", "[a](javascript:1)", "a" * 200, "\udcff\udcfe",
]  # fmt: skip


def hostile_folder(root):
    root.mkdir()
    for i, name in enumerate(HOSTILE):
        folder = name if name != ".." else "...."
        write(root / f"{i:02d} {folder}".replace("/", "_"), groups=(name.encode("utf-8", "replace").decode(), "b"))
    return root
