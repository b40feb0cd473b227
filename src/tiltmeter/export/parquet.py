"""to_parquet: a run as a typed table, with its origin in the file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tiltmeter.export.table import plain_table, target
from tiltmeter.record import Trajectory


def to_parquet(run: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Write every value of a run as one row of a Parquet file.

    The file's metadata contains the clock and the origin as JSON, under the key `tiltmeter`.
    """
    place = target(path, ".parquet")
    table = plain_table(run)
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError("`to_parquet` needs pyarrow: pip install 'tiltmeter[export]'.") from None
    columns = pa.Table.from_pandas(table, preserve_index=False)
    about = json.dumps({"clock": run.clock, "origin": run.origin.to_json()})
    pq.write_table(
        columns.replace_schema_metadata({**(columns.schema.metadata or {}), b"tiltmeter": about.encode()}), place
    )
    return place
