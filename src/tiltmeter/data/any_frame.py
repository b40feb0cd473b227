"""any_frame: tables of several libraries, and files of several formats, as one pandas DataFrame."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: Endings of files that are read as tables. A folder is read as a Hugging Face data set saved with `save_to_disk`.
ENDINGS = (".csv", ".parquet", ".feather", ".arrow")


def any_frame(frame: Any) -> Any:
    """The table as a pandas DataFrame: from pandas, polars, Arrow, Hugging Face `datasets`, or a file.

    >>> import pyarrow as pa
    >>> any_frame(pa.table({"age": [31, None], "sex": ["F", "M"]})).shape
    (2, 2)
    """
    import pandas as pd

    if isinstance(frame, (str, os.PathLike)):
        return frame_from_file(Path(frame))
    if isinstance(frame, pd.DataFrame):
        return frame
    if type(frame).__module__.split(".")[0] == "datasets":
        return _from_datasets(frame)
    import narwhals

    try:
        table = narwhals.from_native(frame)
    except TypeError:
        raise TypeError(
            "`frame` should be a table of pandas, polars, Arrow or datasets, or the path of one. Found "
            f"{type(frame).__name__}."
        ) from None
    if isinstance(table, narwhals.LazyFrame):
        table = table.collect()
    return pd.DataFrame({name: _column(table[name]) for name in table.columns})


def frame_from_file(path: Path) -> Any:
    """The table in a .csv, .parquet or .feather file, or in a folder that `datasets` saved."""
    if path.is_dir():
        return _from_datasets(_saved_dataset(path))
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"A table should end in {', '.join(ENDINGS)}. Found {path.name!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}.")
    import pandas as pd

    try:
        if ending == ".csv":
            return pd.read_csv(path, skipinitialspace=True)
        return pd.read_parquet(path) if ending == ".parquet" else pd.read_feather(path)
    except ImportError:
        raise ImportError(f"Reading {ending} files needs pyarrow: pip install 'tiltmeter[export]'.") from None
    except (ValueError, OSError, OverflowError) as error:  # those of pandas, pyarrow and of decoding among them
        raise ValueError(f"{path} should be a whole {ending} table. Found: {' '.join(str(error).split())}.") from None


def _column(column: Any) -> Any:
    import pandas as pd

    if column.dtype.is_numeric() and column.null_count() == 0:
        return column.to_numpy()
    values = column.to_list()
    if column.dtype.is_numeric():
        return pd.Series([float("nan") if value is None else value for value in values], dtype=float)
    return pd.Series(values)


def _from_datasets(found: Any) -> Any:
    if not hasattr(found, "to_pandas"):
        parts = ", ".join(map(str, getattr(found, "keys", list)()))
        raise TypeError(f"`frame` should be one part of a data set. Found several: choose one of {parts}.")
    return found.with_format(None).to_pandas()


def _saved_dataset(path: Path) -> Any:
    try:
        from datasets import load_from_disk
    except ImportError:
        raise ImportError(f"The folder {path} needs datasets: pip install 'tiltmeter[datasets]'.") from None
    try:
        return load_from_disk(str(path))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} should be a folder that `Dataset.save_to_disk` wrote. Found something else."
        ) from None
