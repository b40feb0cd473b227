"""Verified files: the bytes of a published file; an error if they differ from what was published."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import Any

from tiltmeter.data.public.folder import absent, path_of
from tiltmeter.data.public.sources import File, source_of


def contents(name: str, file: str) -> bytes:
    """The content of this file of the data set, unpacked and verified."""
    expected = source_of(name).file(file)
    path = path_of(name, expected)
    if path is None:
        raise absent(name, file)
    return checked(name, path, expected)


def checked(name: str, path: Path, expected: File) -> bytes:
    """The bytes of the file at `path`, unpacked, if they are those of the published file."""
    data = bytes_of(path)
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise wrong(name, path, "a complete gzip file", "one that cannot be unpacked") from None
    md5 = expected.content_md5 if expected.name.endswith(".gz") else expected.md5
    if md5 is not None and (found := hashlib.md5(data, usedforsecurity=False).hexdigest()) != md5:
        raise wrong(name, path, f"the published content, with md5 {md5}", f"md5 {found} of {len(data):,} bytes")
    if expected.size is not None and len(data) != expected.size:
        raise wrong(name, path, f"{expected.size:,} bytes", f"{len(data):,}")
    if expected.rows is not None and (lines := _rows(data)) != expected.rows:
        raise wrong(name, path, f"{expected.rows:,} rows of a table", f"{lines:,}")
    return data


def bytes_of(path: Path) -> bytes:
    """The bytes of a file, or an error in one sentence if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise OSError(f"{path} should be a file that can be read. Found: {error.strerror or error}.") from None


def _rows(data: bytes) -> int:
    """Number of rows below the header of a CSV file."""
    return max(0, sum(1 for _ in csv.reader(io.StringIO(data.decode("utf-8", errors="replace"), newline=""))) - 1)


def wrong(name: str, path: Path, should: str, found: str) -> ValueError:
    """An error for a file that differs from the published one; it says what to do in one sentence."""
    by_hand = source_of(name).by_hand
    do = f"replace it: {by_hand}" if by_hand else f"delete it and run `tiltmeter data get {name}`"
    return ValueError(f"{path} should hold {should}. Found {found}: the file is incomplete or a different one; {do}.")


def table_of(name: str, path: Path, data: bytes, should: str, **how: Any) -> Any:
    """A text table as a DataFrame; if pandas cannot read it, the file differs from the published one."""
    import pandas as pd

    try:
        return pd.read_csv(io.BytesIO(data), **how)
    except (ValueError, OverflowError) as error:  # errors of pandas and of decoding
        raise wrong(name, path, should, " ".join(str(error).split())) from None
