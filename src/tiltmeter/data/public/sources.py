"""Sources: the public data sets that tiltmeter reads, their addresses, and how their files are verified."""

from __future__ import annotations

from dataclasses import dataclass

IDX = (
    *("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    *("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
)


@dataclass(frozen=True)
class File:
    """One file of a data set, and how to verify it.

    `md5` is that of the published file, `content_md5` that of its unpacked content, because gzip can write the same
    content in many ways. If no checksum could be verified, `size` in bytes or `rows` is used instead.
    """

    name: str
    urls: tuple[str, ...] = ()
    md5: str | None = None
    content_md5: str | None = None
    size: int | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Archive:
    """A tar file with the files of a data set in one top folder; `whole` means that it contains other files of the
    data set.
    """

    url: str
    md5: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class Source:
    """A data set: description, files, licence and, if it cannot be downloaded automatically, what to do."""

    name: str
    about: str
    licence: str
    files: tuple[File, ...]
    archive: Archive | None = None
    by_hand: str = ""
    folders: tuple[str, ...] = ()

    def file(self, name: str) -> File:
        """The file of this name."""
        return next(file for file in self.files if file.name == name)


def _gzipped(base: tuple[str, ...], sums: tuple[str, ...], contents: tuple[str, ...]) -> tuple[File, ...]:
    return tuple(
        File(name, tuple(url + name for url in base), md5, content)
        for name, md5, content in zip(IDX, sums, contents, strict=True)
    )


CIFAR10 = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

#: Every data set by name. The publishers' checksums of gzip files are those that they or their mirrors state; contents,
#: Adult and German credit were compared with real files; CIFAR-10's is on its page; COMPAS, CelebA and Waterbirds
#: publish none.
SOURCES = {
    source.name: source
    for source in (
        Source(
            "mnist",
            "60,000 + 10,000 handwritten digits, 28 x 28",
            "commonly listed as CC BY-SA 3.0",
            _gzipped(
                (
                    "https://ossci-datasets.s3.amazonaws.com/mnist/",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/",
                ),
                (
                    *("f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"),
                    *("9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
                ),
                (
                    *("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
                    *("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
                ),
            ),
        ),
        Source(
            "fashion-mnist",
            "60,000 + 10,000 articles of clothing, 28 x 28",
            "MIT",
            _gzipped(
                (
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                ),
                (
                    *("8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe"),
                    *("bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
                ),
                (
                    *("f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9"),
                    *("8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"),
                ),
            ),
        ),
        Source(
            "cifar10",
            "50,000 + 10,000 colour photographs of ten classes, 32 x 32 (binary version)",
            "none stated; research use",
            tuple(File(f"{name}.bin", size=30_730_000) for name in CIFAR10),
            Archive("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),
            folders=("cifar-10-batches-bin",),
        ),
        Source(
            "adult",
            "32,561 + 16,281 people of the US census of 1994: does their income exceed 50,000 dollars?",
            "CC BY 4.0 (UCI)",
            (
                File("adult.data", (f"{_UCI}/adult/adult.data",), "5d7c39d7b8804f071cdd1f2a7c460872"),
                File("adult.test", (f"{_UCI}/adult/adult.test",), "35238206dfdf7f1fe215bbb874adecdc"),
            ),
        ),
        Source(
            "compas",
            "7,214 people arrested in Broward County and scored by COMPAS: arrested again within two years?",
            "none stated; real people, handle with care",
            (
                File(
                    "compas-scores-two-years.csv",
                    (
                        "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
                    ),
                    rows=7214,
                ),
            ),
        ),
        Source(
            "german",
            "1,000 people who asked a German bank for credit: good or bad risk?",
            "CC BY 4.0 (UCI)",
            (File("german.data", (f"{_UCI}/statlog/german/german.data",), "6b94c2e35480e671545e52a808a8a549"),),
        ),
        Source(
            "celeba",
            "202,599 photographs of faces with 40 attributes",
            "non-commercial research; do not redistribute",
            (File("list_attr_celeba.txt"), File("list_eval_partition.txt"), File("img_align_celeba")),
            by_hand="its publishers provide it at https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html under their "
            "own conditions: put list_attr_celeba.txt, list_eval_partition.txt and the folder img_align_celeba there",
        ),
        Source(
            "waterbirds",
            "11,788 photographs of land and water birds, on land or water as a background",
            "none stated; from CUB-200-2011 and Places",
            (File("metadata.csv", rows=11_788),),
            Archive("https://nlp.stanford.edu/data/dro/waterbird_complete95_forest2water2.tar.gz", whole=True),
            folders=("waterbird_complete95_forest2water2",),
        ),
        Source(
            "utkface",
            "23,708 photographs of faces with age, sex and race in their names",
            "non-commercial research; do not redistribute",
            (File("UTKFace"),),
            by_hand="its publishers provide it at https://susanqq.github.io/UTKFace under their own conditions: put "
            "the folder UTKFace of aligned and cropped faces there",
        ),
        Source(
            "bar",
            "1,941 + 654 photographs of six actions, in training at typical places only",
            "per photograph, in metadata.json",
            (File("train"), File("test")),
            by_hand="its publishers provide it at https://github.com/alinlab/BAR: put the folders train and test there",
        ),
    )
}


def source_of(name: str) -> Source:
    """The data set of this name.

    >>> source_of("adult").files[0].name
    'adult.data'
    """
    if name not in SOURCES:
        raise KeyError(f"No data set {name!r}. There are: {', '.join(SOURCES)}.")
    return SOURCES[name]
