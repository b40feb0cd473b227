"""Strategies of hypothesis that all property tests share: mixtures, grouped data, recipes, trajectories.

`from strategies import mixtures`: this folder is on the path of the tests.
"""

from functools import partial

import numpy as np
import torch
import xarray as xr
from hypothesis import strategies as st

import tiltmeter as tm
from tiltmeter.record.labelled import labels_array

#: Labels that have made trouble: signs, numbers, truth values, intersections, other alphabets, markup.
LABELS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12),
    st.integers(-(10**6), 10**6),
    st.booleans(),
    st.tuples(st.sampled_from(["f", "m", "<b>"]), st.integers(0, 5)),
    st.sampled_from(["+", "-", "", " ", "</script>", "=1+1", "å", "a/b"]),
)
NUMBERS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, 5e-324, 1 / 3]))


def distinct_labels(least=1, most=4):
    """Labels of groups no two of which are equal (1 and True are)."""
    return st.lists(LABELS, min_size=least, max_size=most, unique=True)


@st.composite
def mixtures(draw, groups=("a", "b", "c")):
    """Vectors of mixtures, so that the geometry is always possible; some means vanish, some teachers agree."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number = len(groups)
    weight = rng.dirichlet(np.full(number, 2.0)) * 0.9 + 0.1 / number
    means = rng.normal(size=(number, 5)) * draw(st.sampled_from([0.0, 0.3, 1.0]))
    teachers = rng.normal(size=(number, 5))
    if draw(st.booleans()):
        teachers[1] = teachers[0]
    return {
        "weight": dict(zip(groups, weight / weight.sum(), strict=True)),
        "variance": dict(zip(groups, rng.uniform(0.2, 2.0, number), strict=True)),
        "means": dict(zip(groups, means, strict=True)),
        "teachers": dict(zip(groups, teachers, strict=True)),
        "label_bias": dict(zip(groups, rng.normal(0, 0.5, number), strict=True)),
    }


@st.composite
def grouped_data(draw, labels=(0, 1), smallest=4):
    """Grouped data of one to four groups, arrays, tensors or points in parts, sometimes weighted."""
    names = draw(distinct_labels())
    sizes = [draw(st.integers(smallest, 20)) for _ in names]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = sum(sizes)
    group = [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]
    order = rng.permutation(count)
    x = rng.normal(size=(count, draw(st.integers(1, 3)))).astype("float32")
    kind = draw(st.sampled_from(["array", "tensor", "parts"]))
    points = {"array": x, "tensor": torch.as_tensor(x), "parts": {"x": x, "place": np.arange(count)}}[kind]
    weights = rng.uniform(0.1, 2.0, count) if draw(st.booleans()) else None
    return tm.GroupedData(points, rng.choice(labels, count), [group[k] for k in order], weights)


@st.composite
def recipes(draw):
    """Recipes that a file can hold."""
    rate = draw(st.floats(1e-6, 10.0))
    how = draw(
        st.sampled_from(
            [
                {"lr": rate},
                {"lr": rate, "momentum": 0.9, "nesterov": True},
                {"optimiser": partial(torch.optim.AdamW, lr=rate, weight_decay=0.01)},
                {"optimiser": partial(torch.optim.Adam, lr=rate)},
            ]
        )
    )
    length = draw(st.sampled_from([{"steps": 1}, {"steps": 10_000}, {"epochs": 3}]))
    more = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "batch": st.one_of(st.none(), st.integers(1, 512)),
                "order": st.integers(0, 2**31),
                "clip": st.floats(0.01, 10.0),
                "loss": st.sampled_from([tm.Logistic(), tm.Square(), tm.losses.CrossEntropy()]),
                "weights": st.dictionaries(st.sampled_from(["a", "b", ("a", 1)]), st.floats(0.1, 5.0), min_size=1),
            },
        )
    )
    return tm.Recipe(**how, **length, **more)


@st.composite
def trajectories(draw):
    """Trajectories of one to three curves with their own times and dimensions, any labels, NaN and infinities."""
    groups = labels_array(draw(distinct_labels()))
    curves = {}
    for name in draw(st.lists(st.sampled_from(["loss", "error", "norm"]), min_size=1, max_size=3, unique=True)):
        times = np.cumsum(draw(st.lists(st.integers(1, 1000), min_size=1, max_size=5)))
        dims = {"time": times} if name == "norm" else {"time": times, "group": groups}
        if draw(st.booleans()):
            dims["seed"] = np.arange(draw(st.integers(1, 3)))
        shape = tuple(len(values) for values in dims.values())
        count = int(np.prod(shape))
        values = np.asarray(draw(st.lists(NUMBERS, min_size=count, max_size=count))).reshape(shape)
        curves[name] = xr.DataArray(values, dims=tuple(dims), coords=dims)
    origin = tm.record.Origin(
        "example", settings={"lr": draw(st.floats(0, 1))}, seeds=tuple(draw(st.lists(st.integers(0, 9))))
    )
    return tm.Trajectory(curves, draw(st.sampled_from(["t", "step", "epoch"])), origin)
