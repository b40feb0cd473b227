"""One thread, an experiment made for the tests that counts how often it runs, and tiny data sets in true formats."""

import gzip
import struct
import sys
from dataclasses import dataclass, replace
from types import ModuleType

import altair as alt
import numpy as np
import pytest
import xarray as xr

from data_sources import EVERY, home_of
from tiltmeter import Trajectory
from tiltmeter.cli import main
from tiltmeter.record import Origin
from tiltmeter_lab.catalogue import EXPERIMENTS
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.data import sources


@dataclass(frozen=True)
class Setting:
    steps: int = 4
    seeds: int = 3


class Toy(ModuleType):
    """Random walks, one run per start; `calls` counts what was made, `fail_at` raises before the run of that name."""

    TITLE, PAPER, NEEDS = "Walks go on", "Somebody (2000)", ()
    QUICK, FULL = Setting(), Setting(steps=8, seeds=5)

    def __init__(self):
        super().__init__("tiltmeter_lab.named.toy_of_the_tests")
        self.calls, self.fail_at, self.error = [], None, RuntimeError("boom")

    def run(self, setting, keep):
        return {f"walk {i}": keep(f"walk {i}", lambda i=i: self._walk(setting, i)) for i in range(3)}

    def _walk(self, setting, i):
        if self.fail_at == i:
            raise self.error
        self.calls.append(i)
        values = np.random.default_rng(i).normal(size=(setting.steps, setting.seeds)).cumsum(0)
        coords = {"time": np.arange(setting.steps), "seed": np.arange(setting.seeds)}
        curve = xr.DataArray(values, dims=("time", "seed"), coords=coords)
        return Trajectory({"place": curve}, "step", Origin("toy", seeds=tuple(range(setting.seeds))))

    def claims(self, runs):
        ends = np.concatenate([run["place"].isel(time=-1).values for run in runs.values()])
        seeds = runs["walk 0"]["place"].sizes["seed"]
        return (
            Claim("Walks spread | far", float(ends.std()), "spread", 0.5, error=0.1, seeds=seeds),
            Claim("Walks rise", float(ends.mean()), "mean end", 10.0, "They never do.", safe=False),
        )

    def pictures(self, runs):  # noqa: ARG002
        values = alt.Data(values=[{"x": 1, "y": 2}])
        return {"Where they go": alt.Chart(values).mark_point().encode(x="x:Q", y="y:Q")}


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr("tiltmeter_lab.named.toy_of_the_tests", made, raising=False)
    monkeypatch.setitem(EXPERIMENTS, "toy", "toy_of_the_tests")
    return made


def write_idx(folder, name, count=200):
    rng = np.random.default_rng(0)
    (folder / name).mkdir()
    for prefix in ("train", "t10k"):
        y = np.arange(count, dtype=np.uint8) % 10
        x = rng.integers(0, 60, (count, 28, 28), dtype=np.uint8)
        x[np.arange(count), 2 * y.astype(int) + 4, 5:20] = 250
        for kind, array in (("images-idx3", x), ("labels-idx1", y)):
            data = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
            (folder / name / f"{prefix}-{kind}-ubyte.gz").write_bytes(gzip.compress(data))


def write_cifar10(folder, count=100):
    rng = np.random.default_rng(0)
    (folder / "cifar10").mkdir()
    for name in sources.CIFAR10:
        records = rng.integers(0, 256, (count, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(count) % 10
        (folder / "cifar10" / f"{name}.bin").write_bytes(records.tobytes())


def write_celeba(folder):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    pictures = folder / "celeba" / "img_align_celeba"
    pictures.mkdir(parents=True)
    names = ("Bags_Under_Eyes", "Bangs", "Blond_Hair", "Blurry", "Eyeglasses", "Young")
    marks = np.where(rng.random((240, len(names))) < 0.5, 1, -1)
    lines, parts = ["240", " ".join(names)], []
    for i, row in enumerate(marks):
        file = f"{i + 1:06}.jpg"
        image.fromarray(rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)).save(pictures / file)
        lines.append(f"{file} {' '.join(map(str, row))}")
        parts.append(f"{file} {0 if i < 140 else 2}")
    (folder / "celeba" / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    (folder / "celeba" / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")


def write_named(folder, names):
    image, rng = pytest.importorskip("PIL.Image"), np.random.default_rng(0)
    folder.mkdir(parents=True)
    for name in names:
        image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(folder / name, format="JPEG")


def write_utkface(folder):
    ages = np.random.default_rng(1).integers(20, 60, 240)
    names = [f"{age}_{i % 2}_{i % 5}_20170116{i:06}.jpg.chip.jpg" for i, age in enumerate(ages)]
    write_named(folder / "utkface" / "UTKFace", names)


def write_bar(folder):
    actions = ("climbing", "diving", "fishing", "racing", "throwing", "vaulting")
    for part in ("train", "test"):
        write_named(folder / "bar" / part, [f"{actions[i % 6]}_{i}.jpg" for i in range(180)])


def write_adult(folder):
    rng = np.random.default_rng(0)
    (folder / "adult").mkdir()
    line = "{}, Private, 1, Bachelors, 13, Single, Sales, Wife, White, {}, 0, 0, 40, Cuba, {}"
    rows = [
        line.format(20 + i % 40, ["Male", "Female"][i % 2], [">50K", "<=50K"][int(rng.random() < 0.5)])
        for i in range(160)
    ]
    (folder / "adult" / "adult.data").write_text("\n".join(rows))
    (folder / "adult" / "adult.test").write_text("|1x3\n" + "\n".join(f"{row}." for row in rows))


def write_compas(folder):
    rng = np.random.default_rng(1)
    (folder / "compas").mkdir()
    header = "sex,age,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,"
    header += "c_charge_degree,is_recid,score_text,two_year_recid"
    races = ("African-American", "Caucasian")
    rows = [f"Male,{20 + i % 40},{races[i % 2]},0,0,0,{i % 5},0,F,1,Low,{int(rng.random() < 0.5)}" for i in range(200)]
    (folder / "compas" / "compas-scores-two-years.csv").write_text("\n".join([header, *rows]))


def write_german(folder):
    rng = np.random.default_rng(2)
    (folder / "german").mkdir()
    line = "A11 {} A34 A43 1169 A65 A75 4 {} A101 4 A121 {} A143 A152 2 A173 1 A192 A201 {}"
    rows = [line.format(i % 48, ["A92", "A93"][i % 2], 20 + i % 40, 1 + int(rng.random() < 0.3)) for i in range(240)]
    (folder / "german" / "german.data").write_text("\n".join(rows))


WRITERS = {
    "mnist": lambda folder: write_idx(folder, "mnist"),
    "fashion-mnist": lambda folder: write_idx(folder, "fashion-mnist"),
    "cifar10": write_cifar10,
    "adult": write_adult,
    "compas": write_compas,
    "german": write_german,
    "celeba": write_celeba,
    "utkface": write_utkface,
    "bar": write_bar,
}


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """An empty folder of data sets, and sources that accept tiny files: `tiny("mnist", ...)` writes them."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("TILTMETER_DATA", str(folder))
    for name in EVERY:
        source = home_of(name)[name]
        files = tuple(replace(file, md5=None, content_md5=None, size=None, rows=None) for file in source.files)
        monkeypatch.setitem(home_of(name), name, replace(source, files=files))
    forget()
    yield lambda *names: [WRITERS[name](folder) for name in names]
    forget()


def forget():
    """Data sets that experiments keep in memory are those of another folder."""
    pytest.importorskip("torch")
    from tiltmeter_lab.named import cifar_groups, domino
    from tiltmeter_lab.shared import forecast_tasks

    for kept in (cifar_groups.points, domino.whole, forecast_tasks._images):
        kept.cache_clear()


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Exit code, stdout and stderr of one call of the command line, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def call(*argv):
        code = main(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return call
