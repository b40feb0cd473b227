"""Saved Tangents: a Tangent as a folder of arrays and one JSON file, written and read; nothing is unpickled.

`arrays/` holds the two kernels and a few numbers of every point: label, group, outputs before training. `tangent.json`
comes last: it has everything else, and the checksums of all other files. Inputs and weights are not stored: a loaded
Tangent forecasts without its network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from tiltmeter.data.grouped import GroupedData
from tiltmeter.measures.output_kind import gives_probabilities
from tiltmeter.modules.untouched import untouched
from tiltmeter.record.directory.atomic_files import (
    explained,
    file_is_intact,
    read_array,
    write_array,
    write_sealed_json,
)
from tiltmeter.record.directory.disk import new_directory
from tiltmeter.record.labelled import JSON, label_from_json, label_to_json, number_type, plain_json
from tiltmeter.shown_text import quoted, shortened

if TYPE_CHECKING:
    from tiltmeter.forecast.kernel.tangent import Tangent

#: Format 2 added checksums of the two kernels; format 3 has all arrays in one folder.
FORMAT = 3
TANGENT, ARRAYS = "tangent.json", "arrays"


class StoredNetwork(nn.Module):
    """Answers every held-out point, given by its number, as the network did before training.

    `radial` holds the derivatives of the outputs when all weights are scaled, for the sample and for the held-out
    points. `held_out` is the account of the held-out points for an Origin; `probabilities` says whether the network
    ends in a sigmoid or softmax."""

    def __init__(
        self, name: str, first: np.ndarray, radial: tuple[np.ndarray, np.ndarray], held_out: Any, probabilities: bool
    ) -> None:
        super().__init__()
        self.name, self.radial, self.held_out, self.probabilities = name, radial, held_out, probabilities
        self._first = torch.as_tensor(first)

    @property
    def gives_probabilities(self) -> bool:
        """What the network was found to answer with, while its functions could be seen."""
        return self.probabilities

    def forward(self, places: Tensor) -> Tensor:
        return self._first[places[:, 0]]

    def __deepcopy__(self, memo: Any) -> StoredNetwork:
        raise without_network("A copy of the network")


def numbered(y: np.ndarray, codes: np.ndarray, groups: tuple[Any, ...], weights: np.ndarray | None) -> GroupedData:
    """Grouped data whose points are only their numbers."""
    data = object.__new__(GroupedData)
    data._set(np.arange(len(y))[:, None], y, codes, groups, weights)
    return data


def without_network(what: str) -> ValueError:
    """The error of everything that only the network itself can answer."""
    return ValueError(
        f"{what} needs the network, which a stored Tangent does not hold: use what `tm.tangent(model, train, "
        "held_out)` "
        "returns."
    )


def load_tangent(path: str | os.PathLike[str]) -> Tangent:
    """The Tangent that `Tangent.save` wrote.

    >>> from tempfile import TemporaryDirectory
    >>> from torch import nn
    >>> import tiltmeter as tm
    >>> x = np.random.default_rng(0).normal(size=(400, 5))
    >>> data = tm.GroupedData(x, np.sign(x[:, 0]), ["a", "a", "a", "b"] * 100)
    >>> made, recipe = tm.tangent(nn.Linear(5, 1), *data.split(0.5)), tm.Recipe(lr=0.05, steps=50)
    >>> with TemporaryDirectory() as folder:
    ...     made.save(f"{folder}/kernels")
    ...     kernels = load_tangent(f"{folder}/kernels")
    ...     same = kernels.forecast(recipe) == made.forecast(recipe)
    >>> kernels, same
    (<Tangent of Linear, 200 points of the training data, 200 to look at, 1 output (full)>, True)

    Forecasts and weights found from it are the same.

    Args:
        path: Folder that `Tangent.save` wrote.
    """
    place = Path(path)
    said = _description(place)
    try:
        return _tangent(place, said)
    except KeyError as error:
        raise ValueError(f"{place} is no Tangent that can be read: {error} is missing in {TANGENT}.") from None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        fact = shortened(str(error)).rstrip(".")
        raise ValueError(f"{place} is no Tangent that can be read: {fact}.") from None


def _description(place: Path) -> dict[str, Any]:
    if not place.is_dir():
        found = "a file" if place.exists() else "nothing"
        raise FileNotFoundError(f"`path` should be the folder of a Tangent. Found {found} at {place}.")
    file = place / TANGENT
    if not file.exists():
        raise ValueError(f"{place} is no Tangent: it has no {TANGENT}.")
    text = file.read_bytes()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is damaged: {error}.") from None
    if not isinstance(said, dict) or not file_is_intact(text):
        raise ValueError(f"{file} is damaged: its checksum does not match or is missing.")
    number = said.get("format")
    if number != FORMAT or isinstance(number, bool):
        newer = isinstance(number, int) and number > FORMAT
        cure = "Upgrade tiltmeter to read it." if newer else "Make it anew with `tm.tangent`."
        raise ValueError(f"{file} should have format {FORMAT}. Found format {quoted(number)}. {cure}")
    return said


def _tangent(place: Path, said: Mapping[str, Any]) -> Tangent:
    arrays = {name: _array(place, name, account) for name, account in said["arrays"].items()}
    groups, held_out_groups = (
        tuple(label_from_json(one) for one in said[name]) for name in ("groups", "held_out_groups")
    )
    sizes = np.asarray(said["sizes"], dtype=np.int64)
    outputs = said["outputs"]
    if outputs not in ("full", "trace"):
        raise ValueError(f"outputs should be full or trace. Found {quoted(outputs)}")
    if sizes.shape != (len(groups),) or set(groups) != set(held_out_groups) or not sizes.sum() > 0:
        raise ValueError("its groups do not fit its sizes")
    for part, known in (("sample", groups), ("held_out", held_out_groups)):
        _check_points(arrays, part, len(known), outputs)
    from tiltmeter.forecast.kernel.tangent import Tangent

    return Tangent(
        model=StoredNetwork(
            str(said["network"]),
            arrays["held_out_first"],
            (arrays["sample_radial"], arrays["held_out_radial"]),
            said["held_out"],
            said["probabilities"] is True,
        ),
        sample=numbered(arrays["sample_label"], arrays["sample_group"], groups, arrays.get("sample_weight")),
        held_out=numbered(
            arrays["held_out_label"], arrays["held_out_group"], held_out_groups, arrays.get("held_out_weight")
        ),
        stands_for=arrays["sample_stands_for"],
        sizes=sizes,
        kernel=arrays["sample_kernel"],
        cross=arrays["held_out_kernel"],
        start_sample=arrays["sample_first"],
        start_held_out=arrays["held_out_first"],
        outputs=outputs,
        positive=float(said["positive"]),
        settings=dict(said["settings"]),
    )


def _array(place: Path, name: str, told: Mapping[str, Any]) -> np.ndarray:
    if not name.replace("_", "").isalpha():
        raise ValueError(f"{quoted(name)} is not the name of an array")
    shape = tuple(int(size) for size in told["shape"])
    return read_array(place / ARRAYS / f"{name}.npy", str(number_type(told["dtype"])), shape, told["checksum"]).copy()


def _check_points(arrays: Mapping[str, np.ndarray], part: str, groups: int, outputs: str) -> None:
    """Refuse arrays that do not belong together, which a checksum of each does not find."""
    count = arrays["held_out_first"].shape[1:]
    labels, codes = arrays[f"{part}_label"], arrays[f"{part}_group"]
    points, side = len(labels), int(np.prod(count)) if outputs == "full" else 1
    wanted: dict[str, tuple[int, ...]] = {
        "label": (points,),
        "group": (points,),
        "stands_for": (points,),
        "weight": (points,),
    }
    wanted |= {"first": (points, *count), "radial": (points, *count)}
    wanted["kernel"] = (side * points, side * len(arrays["sample_label"]))
    for name, shape in wanted.items():
        held = arrays.get(f"{part}_{name}")
        if held is not None and (held.shape != shape or not np.isfinite(held).all()):
            raise ValueError(f"{part}_{name}.npy does not fit the {points} points of the {part}")
    if len(count) != 1 or not points or codes.dtype.kind != "i" or codes.min() < 0 or codes.max() >= groups:
        raise ValueError(f"{part}_group.npy does not fit the {groups} groups")


def save_tangent(tangent: Tangent, path: str | os.PathLike[str]) -> None:
    """Write a Tangent as a new folder: completely, or not at all."""
    at_sample, at_held_out = tangent.radial()
    arrays = {
        "sample_kernel": tangent.kernel,
        "held_out_kernel": tangent.cross,
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
    }
    with new_directory(Path(path)) as place:
        try:
            (place / ARRAYS).mkdir()
            told: dict[str, JSON] = {}
            for name, values in arrays.items():
                checksum = write_array(place / ARRAYS / f"{name}.npy", values)
                told[name] = {"dtype": str(values.dtype), "shape": list(values.shape), "checksum": checksum}
            write_sealed_json(place / TANGENT, {**said, "arrays": told})
        except OSError as error:
            raise explained(error, f"The Tangent could not be written to {place}: ") from None


def _probabilities(tangent: Tangent) -> bool:
    """Whether the network ends in a sigmoid or softmax."""
    if isinstance(tangent.model, StoredNetwork):
        return tangent.model.probabilities
    with untouched(tangent.model):
        return gives_probabilities(tangent.model, tangent.held_out.tensors()[0][:8], tangent.read)
