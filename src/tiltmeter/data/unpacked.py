"""Unpacked: how much a file may unpack to. A few megabytes can ask for more memory than a machine has."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

#: The most columns of a table; more take minutes to read before anything can be said of them.
MOST_COLUMNS = 20_000
#: What a machine that does not tell its memory is taken to have.
COMMON_MEMORY = 2**35


@cache
def most_bytes() -> int:
    """A quarter of the memory of this machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = COMMON_MEMORY
    return memory // 4


def refuse_too_large(path: Path, size: float) -> None:
    """Raise a ValueError if a file would unpack to more than a quarter of the memory."""
    if size > most_bytes():
        raise ValueError(
            f"{path} would take {size / 2**30:,.1f} GiB when unpacked, more than {most_bytes() / 2**30:,.1f} GiB, a "
            "quarter of the memory of this machine. Read a part of it."
        )


def refuse_too_many_columns(path: Path, count: int) -> None:
    """Raise a ValueError for a table with more columns than are read."""
    if count > MOST_COLUMNS:
        raise ValueError(f"{path} should have at most {MOST_COLUMNS:,} columns. Found {count:,}.")


def refuse_large_csv(path: Path) -> None:
    """The text of a table of comma-separated values takes a few times its size; its first line tells the columns."""
    refuse_too_large(path, 4.0 * path.stat().st_size)
    with path.open("rb") as file:
        refuse_too_many_columns(path, file.readline(2**24).count(b",") + 1)


def refuse_large_parquet(path: Path) -> None:
    """Numbers take what their type says. Texts are counted one by one, in the form in which each is there once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        columns, rows, schema = file.metadata.num_columns, file.metadata.num_rows, file.schema_arrow
        refuse_too_many_columns(path, columns)
        refuse_too_large(path, 8.0 * rows * columns)
        texts = [one.name for one in schema if _is_text(one.type)]
    if not texts:
        return
    size = 0.0
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for number in range(file.metadata.num_row_groups):
            for name in texts:
                for chunk in file.read_row_group(number, [name]).column(0).chunks:
                    if pa.types.is_dictionary(chunk.type):
                        lengths = pc.binary_length(chunk.dictionary)
                        size += float(pc.sum(lengths.take(chunk.indices.drop_null())).as_py() or 0)
                    else:
                        size += chunk.nbytes
                    refuse_too_large(path, size)


def refuse_large_feather(path: Path) -> None:
    """The numbers of rows and columns are told without unpacking anything."""
    import pyarrow.dataset as ds

    found = ds.dataset(path, format="feather")
    refuse_too_many_columns(path, len(found.schema))
    refuse_too_large(path, 8.0 * found.count_rows() * len(found.schema))


def _is_text(kind: object) -> bool:
    import pyarrow.types as types

    return any(
        is_kind(kind) for is_kind in (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    )
