"""stored_kernels: kernels in files, strip by strip, for samples whose kernel does not fit in memory.

A strip is what some consecutive points of the sample have to do with all later ones and with the held-out points. It is
written aside and renamed, and a file with its checksums comes last, so one that has it is whole, and a run that was
killed goes on with the others. When all are there, they are joined into `kernel.npy` and `cross.npy`, which are
memory-mapped; then `kernels.json` gets their checksums. What was changed since it was written is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.modules.forward import Read, bare
from tiltmeter.modules.tangent.kernel import Outputs, check_moves, plain_attention
from tiltmeter.modules.tangent.kernel_blocks import Tell, block_size, strip
from tiltmeter.modules.tangent.memory import check_stored_memory
from tiltmeter.modules.tangent.plan import Plan, StrayLayer, make_plan
from tiltmeter.modules.untouched import deep_copy, untouched
from tiltmeter.record.directory.atomic_files import (
    explained,
    file_is_intact,
    map_array,
    read_file,
    write_array,
    write_array_rows,
    write_sealed_json,
)
from tiltmeter.record.directory.lock import Lock

#: Numbers in one strip, at most, so that several of them fit in memory: 128 MiB.
STRIP = 2**24
DESCRIPTION, LOCK, KERNEL, CROSS = "kernels.json", "writer.lock", "kernel.npy", "cross.npy"
#: How the files of a strip begin, and what numbers they and the kernels hold.
ROWS, SEEN, NUMBERS = "rows", "held-out", "float64"


def stored_kernels(
    model: nn.Module,
    x: Tensor,
    other: Tensor,
    *,
    outputs: Outputs,
    read: Read | None,
    to: str | os.PathLike[str],
    executor: Executor | None = None,
    tell: Tell | None = None,
) -> tuple[tuple[np.ndarray, np.ndarray], Plan]:
    """K(x, x) and K(other, x) as memory maps of files in the folder `to`, the same to the bit as those in memory.

    What the folder holds of the same network and points is not computed again; another network's kernels are refused.
    With an executor, strips are computed by its workers, which must see the same folder.
    """
    model, place = bare(model), Path(to)
    distrusted: list[nn.Module] = []
    with untouched(model), plain_attention():
        plan = make_plan(model, x if len(x) > 2 else torch.cat([x, other]), read, outputs == "trace", distrusted)
        check_stored_memory(len(x), len(other), plan.outputs, outputs)
        size = _claim(place, _identity(model, x, other, outputs, read), block_size(plan))
        lock = Lock(place / LOCK)
        try:
            while not stored_checksums(place):
                edges = strip_edges(plan, len(x), len(other), size)
                stray = _fill(Strips(plan, x, other, str(place), size), edges, executor, tell, lock)
                if stray is None:
                    _join(plan, edges, len(other), place)
                    break
                # A layer that left its rule: other factors, so strips that are there no longer fit the new ones.
                distrusted.append(next(layer for layer, name in plan.layers.items() if name == stray))
                _discard(place)
                plan = make_plan(model, x, read, outputs == "trace", distrusted)
        except OSError as error:
            kept = " Strips that are complete are kept: repeat the call to go on."
            raise explained(error, f"Kernels could not be written to {place}: ", kept) from None
        finally:
            lock.release()
    side, checksums = (1 if plan.trace else plan.outputs), stored_checksums(place)
    kernel, cross = (
        map_array(place / name, NUMBERS, (side * len(points), side * len(x)), checksums[name])
        for name, points in ((KERNEL, x), (CROSS, other))
    )
    check_moves([kernel.diagonal()], plan)
    return (kernel, cross), plan


@dataclass(frozen=True)
class Strips:
    """What a worker needs to compute any strip: the plan, both sets of points, the folder, the points of a block."""

    plan: Plan
    x: Tensor
    other: Tensor
    place: str
    size: int

    def write(self, first: int, last: int) -> str | None:
        """Compute and write a strip, unless it is there; returns the name of a layer that left its rule."""
        folder = Path(self.place)
        if _there(folder, first):
            return None
        own = self.plan.on(deep_copy(self.plan.model))  # several threads may be at it, and hooks catch the factors
        try:
            with untouched(own.model), plain_attention():
                rows, seen = strip(own, self.x, self.other, first, last, self.size)
        except StrayLayer as stray:
            return own.layers[stray.layer]
        checksums = {name: write_array(_part(folder, name, first), part) for name, part in ((SEEN, seen), (ROWS, rows))}
        # Last, because it says that the strip is complete.
        write_sealed_json(_strip_file(folder, first), checksums)
        return None


def strip_edges(plan: Plan, points: int, others: int, size: int) -> list[int]:
    """Where strips begin, and the end: whole blocks, at most `STRIP` numbers each if a block is not larger."""
    side = 1 if plan.trace else plan.outputs
    most = max(1, STRIP // (side * side * (points + others) * size)) * size
    return [*range(0, points, most), points]


def _fill(strips: Strips, edges: Sequence[int], executor: Executor | None, tell: Tell | None, lock: Lock) -> str | None:
    """Compute the strips that are missing; returns the name of a layer that left its rule, None if none did."""
    pieces = list(pairwise(edges))
    missing = [piece for piece in pieces if not _there(Path(strips.place), piece[0])]
    every = 2 * (len(strips.x) + len(strips.other))
    done = every * sum(last - first for first, last in pieces if (first, last) not in missing)
    found: str | None = None
    for (first, last), stray in _computed(strips, executor, missing):
        lock.beat()
        found = found or stray
        done += every * (last - first)
        if tell is not None:
            tell(done)
    return found


def _computed(
    strips: Strips, executor: Executor | None, pieces: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], str | None]]:
    if executor is None:
        for piece in pieces:
            yield piece, strips.write(*piece)
        return
    running = {executor.submit(strips.write, *piece): piece for piece in pieces}
    try:
        while running:
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for one in ended:
                yield running.pop(one), one.result()
    finally:
        for one in running:
            one.cancel()


def _part(place: Path, name: str, first: int) -> Path:
    return place / f"{name}-{first:09d}.npy"


def _strip_file(place: Path, first: int) -> Path:
    return place / f"strip-{first:09d}.json"


def _there(place: Path, first: int) -> bool:
    return _strip_file(place, first).exists()


def stored_checksums(place: Path) -> dict[str, int]:
    """The checksums of both kernels in a folder; nothing if they are not yet complete."""
    checksums: dict[str, int] = _read_sealed(place / DESCRIPTION).get("checksums", {})
    return checksums


def _read_sealed(path: Path) -> dict[str, Any]:
    """A small file as it was written; those of format 1 had no checksum."""
    text = read_file(path)
    try:
        held: Any = json.loads(text)
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict) or not (file_is_intact(text) or held.get("format") == 1):
        raise ValueError(f"{path} should be what `tangent` wrote. Found something else: remove the folder.")
    return held


def _join(plan: Plan, edges: Sequence[int], others: int, place: Path) -> None:
    """Both triangles from the strips, row by row; strips go when the whole is there."""
    side = 1 if plan.trace else plan.outputs
    starts, points = edges[:-1], edges[-1]
    checksums = {first: _read_sealed(_strip_file(place, first)) for first in starts}

    def opened(name: str) -> list[np.ndarray]:
        shapes = {
            first: ((last - first) * side, (points - first) * side)
            if name == ROWS
            else (others * side, (last - first) * side)
            for first, last in pairwise(edges)
        }
        return [
            map_array(_part(place, name, first), NUMBERS, shape, checksums[first].get(name, -1))
            for first, shape in shapes.items()
        ]

    upper, whole = opened(ROWS), opened(SEEN)

    def kernel_rows() -> Iterator[np.ndarray]:
        for number, first in enumerate(starts):
            width = (edges[number + 1] - first) * side
            before = [
                upper[earlier][:, (first - start) * side : (first - start) * side + width].T
                for earlier, start in enumerate(starts[:number])
            ]
            yield np.concatenate([*before, upper[number]], axis=1)

    def cross_rows() -> Iterator[np.ndarray]:
        step = max(1, STRIP // max(1, points * side))
        for row in range(0, others * side, step):
            yield np.concatenate([part[row : row + step] for part in whole], axis=1)

    columns, kind = points * side, np.dtype(NUMBERS)
    joined = {
        CROSS: write_array_rows(place / CROSS, (others * side, columns), kind, cross_rows()),
        KERNEL: write_array_rows(place / KERNEL, (columns, columns), kind, kernel_rows()),
    }
    held = _read_sealed(place / DESCRIPTION)
    held.pop("crc", None)
    write_sealed_json(place / DESCRIPTION, {**held, "checksums": joined})
    _discard(place)


def _discard(place: Path) -> None:
    # The file that says that a strip is complete goes first, so that no strip seems complete that is not.
    for pattern in ("strip-*.json", f"{ROWS}-*.npy", f"{SEEN}-*.npy"):
        for path in place.glob(pattern):
            path.unlink()


def _claim(place: Path, identity: str, size: int) -> int:
    """The folder belongs to one network and its points; returns the points of a block, as at its first use."""
    place.mkdir(parents=True, exist_ok=True)
    said = place / DESCRIPTION
    if not said.exists():
        if any(path.name != LOCK for path in place.iterdir()):
            raise ValueError(f"`to` should be a new folder, or one with kernels. Found other files in {place}.")
        write_sealed_json(said, {"format": 2, "of": identity, "block": size})
    held = _read_sealed(said)
    try:
        of, block = held["of"], int(held["block"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{said} should be what `tangent` wrote. Found something else: remove the folder.") from None
    if of != identity:
        raise ValueError(
            f"`to` should be a new folder, or hold kernels of this network and these points. Found those of another in "
            f"{place}."
        )
    return block


def _identity(model: nn.Module, x: Tensor, other: Tensor, outputs: Outputs, read: Read | None) -> str:
    """A hash of everything that the kernels depend on, but for the code."""
    found = hashlib.sha256(f"{type(model).__qualname__} {outputs} {getattr(read, '__qualname__', read)}".encode())
    tensors = {**dict(model.state_dict(keep_vars=True)), " x": x, " held_out": other}
    for name, value in tensors.items():
        if isinstance(value, Tensor):
            plain = value.detach().cpu().contiguous()
            found.update(f"{name} {plain.dtype} {tuple(plain.shape)} {value.requires_grad}".encode())
            found.update(plain.reshape(-1).view(torch.uint8).cpu().numpy().data if plain.numel() else b"")
    return found.hexdigest()
