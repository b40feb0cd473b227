"""Tiny data sets in the true formats of their publishers."""

import csv
import gzip
import struct
from dataclasses import replace

import numpy as np
import pytest

from data_sources import EVERY, home_of
from tiltmeter_lab.data import sources

ADULT = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, {}",
    "28, Private, 338409, Bachelors, 13, Married-civ-spouse, Prof-specialty, Wife, Black, Female, 0, 0, 40, Cuba, {}",
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, 60, South, {}",
    "31, Private, 45781, Masters, 14, Never-married, Prof-specialty, Not-in-family, White, Female, 14084, 1980, 50, ?, {}",
]
GERMAN = [
    "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1",
    "A12 48 A32 A43 5951 A61 A73 2 A92 A101 2 A121 22 A143 A152 1 A173 1 A191 A201 2",
]
COMPAS = {
    "sex": ["Male", "Female"],
    "age": [69, 24, 31],
    "race": ["African-American", "Caucasian", "Other"],
    "juv_fel_count": [0],
    "juv_misd_count": [0, 1],
    "juv_other_count": [0],
    "priors_count": [0, 4, 2, 1],
    "days_b_screening_arrest": [-1, 0, 30, -30, 0, 0, 31],
    "c_charge_degree": ["F", "M"],
    "is_recid": [0, 1],
    "score_text": ["Low", "High", "Medium"],
    "two_year_recid": [0, 1],
}


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder of data sets, and sources that accept tiny files in place of the published ones."""
    monkeypatch.setenv("TILTMETER_DATA", str(tmp_path))
    for name in EVERY:
        source = home_of(name)[name]
        files = tuple(replace(file, md5=None, content_md5=None, size=None, rows=None) for file in source.files)
        monkeypatch.setitem(home_of(name), name, replace(source, files=files))
    return tmp_path


@pytest.fixture
def write(here):
    """Writes one of the data sets, small."""

    def digits(name):
        rng = np.random.default_rng(0)
        for prefix, count in (("train", 20), ("t10k", 10)):
            x, y = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8), np.arange(count, dtype=np.uint8) % 10
            (here / name / f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(x)))
            (here / name / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(y)))

    def cifar10():
        rng = np.random.default_rng(0)
        for name in sources.CIFAR10:
            records = rng.integers(0, 256, (20, 3073), dtype=np.uint8)
            records[:, 0] = np.arange(20) % 10
            (here / "cifar10" / f"{name}.bin").write_bytes(records.tobytes())

    def adult():
        lines = [line.format(["<=50K", ">50K"][i % 3 == 0]) for i, line in enumerate(ADULT * 20)]
        (here / "adult" / "adult.data").write_text("\n".join(lines) + "\n\n")
        (here / "adult" / "adult.test").write_text("|1x3 Cross validator\n" + "".join(f"{line}.\n" for line in lines))

    def german():
        (here / "german" / "german.data").write_text("\n".join(GERMAN * 100) + "\n")

    def compas():
        with open(here / "compas" / "compas-scores-two-years.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["name", *COMPAS, "decile_score"])
            for i in range(420):
                out.writerow(['Doe, "J"', *(values[i % len(values)] for values in COMPAS.values()), 3])

    def celeba():
        names = [f"{i:06}.jpg" for i in range(1, 61)]
        marks = np.where(np.random.default_rng(0).random((60, 3)) < 0.5, -1, 1)
        rows = [f"{name} {' '.join(f'{m:2d}' for m in row)}" for name, row in zip(names, marks, strict=True)]
        (here / "celeba" / "list_attr_celeba.txt").write_text("\n".join(["60", "Bald Bangs Male ", *rows]) + "\n")
        parts = [f"{name} {0 if i < 40 else 1 if i < 50 else 2}" for i, name in enumerate(names)]
        (here / "celeba" / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")

    def waterbirds():
        with open(here / "waterbirds" / "metadata.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["img_id", "img_filename", "y", "split", "place", "place_filename"])
            for i in range(160):
                out.writerow([i + 1, f"001.Gull/{i}.jpg", i % 2, min(2, i // 120), i // 2 % 2, "/o/ocean/1.jpg"])

    def pictures(folder, names):
        (here / folder).mkdir(parents=True)
        for name in names:
            (here / folder / name).write_bytes(b"not read")

    def utkface():
        names = [f"{20 + i}_{i % 2}_{i % 5}_2017011622{i:04}.jpg.chip.jpg" for i in range(60)]
        pictures("utkface/UTKFace", [*names, "39_1_20170116174525125.jpg.chip.jpg"])

    def bar():
        for part, count in (("train", 60), ("test", 24)):
            actions = ("climbing", "diving", "fishing", "racing", "throwing", "vaulting")
            pictures(f"bar/{part}", [f"{actions[i % 6]}_{i}.jpg" for i in range(count)])

    makers = {
        "utkface": utkface,
        "bar": bar,
        "mnist": lambda: digits("mnist"),
        "fashion-mnist": lambda: digits("fashion-mnist"),
        "cifar10": cifar10,
        "adult": adult,
        "german": german,
        "compas": compas,
        "celeba": celeba,
        "waterbirds": waterbirds,
    }

    def make(name):
        (here / name).mkdir(exist_ok=True)
        makers[name]()
        return here / name

    return make
