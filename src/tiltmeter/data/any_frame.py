"""any_frame: tables of several libraries, and files of several formats, as one pandas DataFrame."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tiltmeter.arguments import checked_path
from tiltmeter.data.unpacked import refuse_large_csv, refuse_large_feather, refuse_large_parquet


def is_table(value: object) -> bool:
    """Whether this is a pandas DataFrame."""
    import pandas as pd

    return isinstance(value, pd.DataFrame)


def column(table: Any, name: object, what: str) -> Any:
    """One column of a table, by name."""
    if not isinstance(name, Hashable) or name not in table.columns:
        raise KeyError(f"`{what}`: no column {name!r}. There are: {', '.join(map(repr, table.columns))}.")
    return table[name]


def check_once(names: Sequence[Any], what: str) -> None:
    """Refuse a column that is named twice: nothing says which of the two is meant."""
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise ValueError(f"`{what}` should name every column once. Found {twice[0]!r} twice.")


def group_labels(table: Any, group: Any) -> Any:
    """The labels in one column, or tuples of labels in several columns (intersections)."""
    if isinstance(group, (list, tuple)) and not (isinstance(group, tuple) and group in list(table.columns)):
        if not group:
            raise ValueError("`group` should name at least one column. Found none.")
        columns = [column(table, name, "group").tolist() for name in group]
        return list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
    return column(table, group, "group").tolist()


def features(table: Any, names: Sequence[Any]) -> np.ndarray:
    """These columns as one array of numbers."""
    words = [str(name) for name in names if table[name].dtype.kind not in "fiub"]
    if words:
        raise TypeError(
            f"Features should be numbers. Found other values in {', '.join(words)}: encode them first, for example "
            "with `pandas.get_dummies`, or choose columns with columns=."
        )
    if not names:
        raise ValueError("No column is left for the features: choose some with columns=.")
    return np.asarray(table[list(names)].to_numpy(dtype=np.float32))


def read_table(
    table: Any, y: Any, group: Any, weights: Any, columns: Sequence[Any] | None
) -> tuple[np.ndarray, Any, Any, Any]:
    used: list[Any] = []

    def named(value: Any, what: str) -> Any:
        if isinstance(value, str):
            used.append(value)
            return column(table, value, what).to_numpy()
        return value

    labels, mass = named(y, "y"), named(weights, "weights")
    names = isinstance(group, str) or (
        isinstance(group, (list, tuple)) and len(group) < len(table) and all(isinstance(g, str) for g in group)
    )
    if isinstance(group, str) and group == "label" and "label" not in table.columns:
        members: Any = labels
    elif names:
        used += [group] if isinstance(group, str) else list(group)
        members = group_labels(table, group)
    else:
        members = group
    chosen = list(columns) if columns is not None else [name for name in table.columns if name not in used]
    check_once(list(table.columns), "x")
    check_once(chosen, "columns")
    for name in chosen:
        column(table, name, "columns")
    return features(table, chosen), labels, members, mass


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
        return frame_from_file(checked_path("frame", frame))
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


#: What each kind of table may unpack to.
LIMITS = {".csv": refuse_large_csv, ".parquet": refuse_large_parquet, ".feather": refuse_large_feather}


def frame_from_file(path: Path) -> Any:
    """The table in a .csv, .parquet or .feather file, or in a folder that `datasets` saved."""
    if path.is_dir():
        saved = _saved_dataset(path)
        try:
            return _from_datasets(saved)
        except TypeError:
            raise  # several parts
        except Exception as error:
            raise ValueError(f"{path} should be a whole data set. Found: {' '.join(str(error).split())}.") from None
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"A table should end in {', '.join(ENDINGS)}. Found {path.name!r}.")
    if not path.is_file():
        raise FileNotFoundError(f"No file {path}.")
    import pandas as pd

    try:
        LIMITS[ending](path)
    except ImportError:
        pass  # said below
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} should be a whole {ending} table. Found: {' '.join(str(error).split())}.") from None
    except Exception as error:  # what pyarrow raises for damaged files
        raise ValueError(f"{path} should be a whole {ending} table. Found: {' '.join(str(error).split())}.") from None
    try:
        if ending == ".csv":
            return pd.read_csv(path, skipinitialspace=True)
        if ending == ".parquet":
            return pd.read_parquet(path)
        from pyarrow import feather

        # What pandas makes of a damaged table may end the interpreter, so it sees only what Arrow found to be whole.
        feather.read_table(path, memory_map=False).validate(full=True)
        return pd.read_feather(path)
    except ImportError:
        raise ImportError(f"Reading {ending} files needs pyarrow: pip install 'tiltmeter[export]'.") from None
    except Exception as error:  # pandas, pyarrow and what they call raise many kinds for damaged files
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
    plain = found.with_format(None)
    if hasattr(plain.data, "validate"):
        plain.data.validate(full=True)  # as for a file of Feather
    return plain.to_pandas()


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
    except Exception as error:
        raise ValueError(f"{path} should be a whole data set. Found: {' '.join(str(error).split())}.") from None
