"""A disk that loses power: the system calls of a writer are recorded, and replayed up to any of them.

What was synced is there afterwards. Of everything else, each file and each folder may have kept it, lost it, kept its
length without its content (zeros), or kept some pages and some names and not others, in any order.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 512


@dataclass
class Call:
    """One system call: what it did, to which file (a number that survives renaming) or names."""

    kind: str
    file: int = -1
    names: tuple[str, ...] = ()
    place: int = 0
    data: bytes = b""


@dataclass
class Recording:
    """The calls below one folder, in order."""

    root: Path
    calls: list[Call] = field(default_factory=list)
    #: The file behind a name, and behind an open descriptor.
    names: dict[str, int] = field(default_factory=dict)
    opened: dict[int, tuple[str, int]] = field(default_factory=dict)
    count: int = 0

    def inside(self, path: Any) -> str | None:
        """The name below the folder, or None for everything else."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        text = os.path.abspath(os.fsdecode(path))
        if text == str(self.root):
            return "."
        return os.path.relpath(text, self.root) if text.startswith(f"{self.root}{os.sep}") else None


@contextlib.contextmanager
def recorded(root: Path) -> Iterator[Recording]:
    """Record what this process does to the disk below this folder. Python's own file objects are not recorded: the
    replay of all calls is compared with the folder itself, so that nothing is missed without a word."""
    recording = Recording(root)
    real: dict[str, Callable[..., Any]] = {}

    def patched(name: str) -> Callable[[Callable[..., Any]], None]:
        def install(function: Callable[..., Any]) -> None:
            real[name] = getattr(os, name)
            setattr(os, name, function)

        return install

    def note(*given: Any, **more: Any) -> None:
        recording.calls.append(Call(*given, **more))

    @patched("open")
    def open_(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        name = recording.inside(path) if dir_fd is None else None
        there = name is not None and os.path.lexists(path)
        descriptor: int = real["open"](path, flags, mode, dir_fd=dir_fd)
        if name is None:
            return descriptor
        if not there:
            recording.names[name] = recording.count
            recording.count += 1
            note("create", recording.names[name], (name,))
        recording.opened[descriptor] = name, recording.names.get(name, -1)
        if flags & os.O_TRUNC and there:
            note("truncate", recording.names[name])
        return descriptor

    @patched("close")
    def close(descriptor: int) -> None:
        recording.opened.pop(descriptor, None)
        real["close"](descriptor)

    @patched("write")
    def write(descriptor: int, data: Any) -> int:
        if descriptor not in recording.opened:
            return int(real["write"](descriptor, data))
        import fcntl

        append = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
        place = os.fstat(descriptor).st_size if append else os.lseek(descriptor, 0, os.SEEK_CUR)
        done = int(real["write"](descriptor, data))
        note("write", recording.opened[descriptor][1], (), place, bytes(memoryview(data).cast("B")[:done]))
        return done

    def synced(name: str) -> None:
        @patched(name)
        def sync(descriptor: int) -> None:
            real[name](descriptor)
            if descriptor in recording.opened:
                path, file = recording.opened[descriptor]
                note("sync", file, (path,))

    synced("fsync")
    synced("fdatasync")

    @patched("ftruncate")
    def ftruncate(descriptor: int, length: int) -> None:
        real["ftruncate"](descriptor, length)
        if descriptor in recording.opened:
            note("truncate", recording.opened[descriptor][1], (), length)

    def renamed(kind: str) -> None:
        @patched(kind)
        def rename(old: Any, new: Any, **more: Any) -> None:
            real[kind](old, new, **more)
            source, target = recording.inside(old), recording.inside(new)
            if source is not None and target is not None:
                note("rename", -1, (source, target))
                for name in [n for n in recording.names if n == source or n.startswith(source + os.sep)]:
                    recording.names[target + name[len(source) :]] = recording.names.pop(name)

    renamed("rename")
    renamed("replace")

    def removed(kind: str) -> None:
        @patched(kind)
        def remove(path: Any, *, dir_fd: int | None = None) -> None:
            real[kind](path, dir_fd=dir_fd)
            name = recording.inside(path)
            if name is not None:
                recording.names.pop(name, None)
                note("remove", -1, (name,))

    for kind in ("unlink", "remove", "rmdir"):
        removed(kind)

    @patched("mkdir")
    def mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        real["mkdir"](path, mode, dir_fd=dir_fd)
        name = recording.inside(path)
        if name is not None:
            note("mkdir", -1, (name,))

    with_descriptors, shutil._use_fd_functions = shutil._use_fd_functions, False  # type: ignore[attr-defined]
    try:
        yield recording
    finally:
        shutil._use_fd_functions = with_descriptors  # type: ignore[attr-defined]
        for name, function in real.items():
            setattr(os, name, function)


def after_power_cut(recording: Recording, count: int, target: Path, random: np.random.Generator | None) -> None:
    """Write the disk as it may be after the first `count` calls; without `random`, with all of them done."""
    calls = recording.calls[:count]
    names, folders = _names(calls, random)
    contents = _contents(calls, random)
    target.mkdir(parents=True)
    for name in sorted(folders):
        if (target / name).parent.is_dir():
            (target / name).mkdir()
    for name, file in names.items():
        if (target / name).parent.is_dir():
            (target / name).write_bytes(contents.get(file, b""))


def _names(calls: list[Call], random: np.random.Generator | None) -> tuple[dict[str, int], set[str]]:
    """The files and folders that have their names on the disk."""
    last = {call.names[0]: place for place, call in enumerate(calls) if call.kind == "sync" and call.file < 0}
    ways: dict[str, int] = {}
    names: dict[str, int] = {}
    folders: set[str] = set()
    alive: dict[str, int] = {}
    living: set[str] = set()

    def kept(place: int, name: str) -> bool:
        folder = os.path.dirname(name)
        if random is None or place < last.get(folder or ".", -1):
            return True
        way = ways.setdefault(folder, int(random.integers(3)))
        return way == 0 or (way == 1 and bool(random.random() < 0.5))

    for place, call in enumerate(calls):
        name = call.names[0] if call.names else ""
        if call.kind == "create":
            alive[name] = call.file
            if kept(place, name):
                names[name] = call.file
        elif call.kind == "mkdir":
            living.add(name)
            if kept(place, name):
                folders.add(name)
        elif call.kind == "remove":
            alive.pop(name, None)
            living.discard(name)
            if kept(place, name):
                names.pop(name, None)
                folders.discard(name)
        elif call.kind == "rename":
            target = call.names[1]
            keep = kept(place, target)
            below = [n for n in alive if n == name or n.startswith(name + os.sep)]
            trees = [n for n in living if n == name or n.startswith(name + os.sep)]
            if keep:
                if name in alive:
                    names.pop(name, None)
                    names[target] = alive[name]
                else:
                    folders.add(target)
                    for one in below:
                        if one in names:
                            names[target + one[len(name) :]] = names.pop(one)
                    for one in [n for n in folders if n == name or n.startswith(name + os.sep)]:
                        folders.discard(one)
                        folders.add(target + one[len(name) :])
            for one in below:
                alive[target + one[len(name) :]] = alive.pop(one)
            for one in trees:
                living.discard(one)
                living.add(target + one[len(name) :])
    return names, folders


def _contents(calls: list[Call], random: np.random.Generator | None) -> dict[int, bytes]:
    durable: dict[int, bytearray] = {}
    now: dict[int, bytearray] = {}
    for call in calls:
        if call.file < 0:
            continue
        content = now.setdefault(call.file, bytearray())
        if call.kind == "write":
            content.extend(bytes(max(0, call.place - len(content))))
            content[call.place : call.place + len(call.data)] = call.data
        elif call.kind == "truncate":
            del content[call.place :]
            content.extend(bytes(max(0, call.place - len(content))))
        elif call.kind == "sync":
            durable[call.file] = bytearray(content)
    if random is None:
        return {file: bytes(content) for file, content in now.items()}
    return {file: _torn(bytes(durable.get(file, b"")), bytes(one), random) for file, one in now.items()}


def _torn(old: bytes, new: bytes, random: np.random.Generator) -> bytes:
    """What is on the disk of a file that was synced as `old` and is `new` in memory."""
    way = random.integers(4)
    if old == new or way == 0:
        return new
    if way == 1:
        return old
    same = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    if way == 2:  # the length is there, from some page on the content is not
        cut = same + int(random.integers(len(new) - same + 1))
        cut = max(same, cut // PAGE * PAGE)
        return new[:cut].ljust(len(new), b"\0")
    pages = bytearray(max(len(old), len(new)) if random.random() < 0.5 else len(new))
    pages[: len(old)] = old[: len(pages)]
    for start in range(same // PAGE * PAGE, len(new), PAGE):
        if random.random() < 0.5:
            pages[start : start + PAGE] = new[start : start + PAGE]
    return bytes(pages)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
