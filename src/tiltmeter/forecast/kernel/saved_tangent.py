"""save_tangent: a Tangent as a folder of arrays and one JSON file.

`kernel.npy` and `cross.npy` are the files that `tangent(to=)` writes; they are memory-mapped. `points/` has a few
numbers of every point: label, group, outputs before training. `tangent.json` comes last: it has everything else, and
the checksums of all other files. Inputs and weights are not stored.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tiltmeter.forecast.kernel.stored_network import StoredNetwork
from tiltmeter.forecast.kernel.tangent import Tangent
from tiltmeter.forecast.kernel.tangent_files import FORMAT, POINTS, TANGENT
from tiltmeter.measures.output_kind import gives_probabilities
from tiltmeter.modules.tangent.stored_kernels import CROSS, KERNEL
from tiltmeter.modules.untouched import untouched
from tiltmeter.record.directory.atomic_files import (
    explained,
    write_array,
    write_array_rows,
    write_sealed_json,
)
from tiltmeter.record.directory.disk import new_directory
from tiltmeter.record.labelled import JSON, label_to_json, plain_json

#: Rows of a kernel that are written together.
ROWS = 1024


def save_tangent(tangent: Tangent, path: str | os.PathLike[str]) -> None:
    """Write a Tangent as a new folder: completely, or not at all."""
    with new_directory(Path(path)) as place:
        checksums = {
            name: write_array_rows(place / name, values.shape, values.dtype, _strips(values))
            for name, values in ((KERNEL, tangent.kernel), (CROSS, tangent.cross))
        }
        describe_tangent(tangent, place, checksums)


def describe_tangent(tangent: Tangent, place: Path, checksums: Mapping[str, int]) -> None:
    """Write what a folder of kernels lacks to be a Tangent; `checksums` are those of its kernels."""
    at_sample, at_held_out = tangent.radial()
    arrays = {
        "sample_label": tangent.sample.y,
        "sample_group": tangent.sample.codes,
        "sample_stands_for": tangent.stands_for,
        "sample_first": tangent.start_sample,
        "sample_radial": at_sample.reshape(tangent.start_sample.shape),
        "held_out_label": tangent.held_out.y,
        "held_out_group": tangent.held_out.codes,
        "held_out_first": tangent.start_held_out,
        "held_out_radial": at_held_out.reshape(tangent.start_held_out.shape),
    }
    for name, data in (("sample_weight", tangent.sample), ("held_out_weight", tangent.held_out)):
        if data.weights is not None:
            arrays[name] = data.weights
    said: dict[str, JSON] = {
        "format": FORMAT,
        "network": tangent.network_name,
        "outputs": tangent.outputs,
        "positive": tangent.positive,
        "groups": [label_to_json(group) for group in tangent.sample.groups],
        "held_out_groups": [label_to_json(group) for group in tangent.held_out.groups],
        "sizes": tangent.sizes.tolist(),
        "settings": plain_json(tangent.settings),
        "held_out": plain_json(tangent.held_out_described),
        "probabilities": _probabilities(tangent),
        "kernels": str(tangent.kernel.dtype),
        "checksums": dict(checksums),
    }
    try:
        (place / POINTS).mkdir(exist_ok=True)
        told: dict[str, JSON] = {}
        for name, values in arrays.items():
            checksum = write_array(place / POINTS / f"{name}.npy", values)
            told[name] = {"dtype": str(values.dtype), "shape": list(values.shape), "checksum": checksum}
        write_sealed_json(place / TANGENT, {**said, "points": told})
    except OSError as error:
        raise explained(error, f"The Tangent could not be written to {place}: ") from None


def _probabilities(tangent: Tangent) -> bool:
    """Whether the network ends in a sigmoid or softmax."""
    if isinstance(tangent.model, StoredNetwork):
        return tangent.model.probabilities
    with untouched(tangent.model):
        return gives_probabilities(tangent.model, tangent.held_out.tensors()[0][:8], tangent.read)


def _strips(values: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(values), ROWS):
        yield values[first : first + ROWS]
