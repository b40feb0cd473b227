"""similar_classes: which classes of pictures look alike, and how long each takes to be learnt half way."""

from __future__ import annotations

import numpy as np
import xarray as xr

import tiltmeter as tm
from tiltmeter_lab.claim import Claim


def class_similarity(data: tm.GroupedData, group: str) -> xr.DataArray:
    """Cosines between the mean pictures of the classes of a group, each taken from the mean of all; 0 with itself.

    >>> x = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-1.0, -1.0]])
    >>> data = tm.GroupedData(np.tile(x, (10, 1)), np.tile([0, 1, 2, 3], 10), ["a"] * 40)
    >>> class_similarity(data, "a").argmax("other_class").values.tolist()[:2]
    [1, 0]
    """
    mine = data.codes == data.groups.index(group)
    x, y = np.asarray(data.x, dtype=float)[mine].reshape(int(mine.sum()), -1), np.asarray(data.y)[mine]
    labels = np.unique(y)
    means = np.stack([x[y == label].mean(0) for label in labels]) - x.mean(0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    cosine = means @ means.T
    np.fill_diagonal(cosine, 0.0)
    return xr.DataArray(cosine, dims=("class", "other_class"), coords={"class": labels, "other_class": labels})


def alike_and_unlike(similarity: xr.DataArray) -> tuple[list[int], list[int]]:
    """The two classes that look most like each other, and the two whose nearest other class is farthest."""
    labels = similarity.coords["class"].values
    nearest = similarity.max("other_class").values
    most = int(nearest.argmax())
    pair = {most, int(similarity.values[most].argmax())}
    others = [i for i in np.argsort(nearest, kind="stable") if i not in pair][:2]
    return sorted(int(labels[i]) for i in pair), sorted(int(labels[i]) for i in others)


def half_way(curve: xr.DataArray) -> xr.DataArray:
    """The first time at which each class has made half of its way from the first evaluation to the last, by
    interpolation.

    >>> times = {"time": [0, 2, 4, 8]}
    >>> half_way(xr.DataArray([[0.0], [0.4], [0.8], [1.0]], dims=("time", "class"), coords=times)).item()
    2.5
    """
    times, found = curve.coords["time"].values.astype(float), []
    for values in curve.transpose("time", "class").values.T:
        whole = values[-1] - values[0]
        if whole == 0.0:  # the class ends where it began
            found.append(np.nan)
            continue
        way = (values - values[0]) / whole
        i = int((way >= 0.5).argmax())
        found.append(times[i - 1] + (times[i] - times[i - 1]) * (0.5 - way[i - 1]) / (way[i] - way[i - 1]))
    return curve.isel(time=0, drop=True).copy(data=np.array(found))


def similar_class_claims(
    similarity: tm.Trajectory, plain: tm.Trajectory, group: str, sentences: tuple[str, ...]
) -> list[Claim]:
    """Are the two classes that look most alike slower, or more confused, than the two that look least like
    any?"""
    cosine = similarity["similarity"].isel(time=0)
    alike, unlike = alike_and_unlike(cosine)
    accuracy = plain["class_accuracy"].sel(group=group)

    def slower(values: xr.DataArray) -> float:
        times = half_way(values.mean("seed"))
        return float(times.sel({"class": alike}).mean() / times.sel({"class": unlike}).mean())

    seeds = accuracy.coords["seed"].values
    error = None
    if len(seeds) > 1:
        without = [slower(accuracy.drop_sel(seed=seed)) for seed in seeds]
        error = float(np.sqrt((len(seeds) - 1) * np.var(without)))
    end = accuracy.isel(time=-1)
    better = end.sel({"class": unlike}).mean("class") - end.sel({"class": alike}).mean("class")
    scatter = float(better.std("seed", ddof=1) / np.sqrt(len(seeds))) if len(seeds) > 1 else None
    largest = [float(cosine.sel({"class": those}).max("other_class").mean()) for those in (alike, unlike)]
    told_ = (
        f"Alike: classes {alike}, cosine {largest[0]:.2f}; unlike: {unlike}, {largest[1]:.2f} with the nearest. They "
        "may differ in other ways, too."
    )
    return [
        Claim(sentences[0], slower(accuracy), "step at half of the way in accuracy, alike over unlike", 1.05, told_,
              rule="at most", error=error, seeds=len(seeds), safe=False),
        Claim(sentences[1], float(better.mean()), "final accuracy, unlike minus alike", 0.0, told_, error=scatter,
              seeds=len(seeds), safe=False),
    ]  # fmt: skip
