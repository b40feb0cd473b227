"""Sources: the public data sets that tiltmeter reads, their addresses, and how their files are verified."""

from __future__ import annotations

from dataclasses import dataclass

from tiltmeter.plugins import PARTS, plugin


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
    #: Address of the function that loads all of it, part by part, as its users do.
    load: str = ""

    def file(self, name: str) -> File:
        """The file of this name."""
        return next(file for file in self.files if file.name == name)


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"

#: The data sets of the core by name. Adult's checksums are those of real files; COMPAS publishes none.
SOURCES = {
    source.name: source
    for source in (
        Source(
            "adult",
            "32,561 + 16,281 people of the US census of 1994: does their income exceed 50,000 dollars?",
            "CC BY 4.0 (UCI)",
            (
                File("adult.data", (f"{UCI}/adult/adult.data",), "5d7c39d7b8804f071cdd1f2a7c460872"),
                File("adult.test", (f"{UCI}/adult/adult.test",), "35238206dfdf7f1fe215bbb874adecdc"),
            ),
            load="tiltmeter.data.public.adult:whole",
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
            load="tiltmeter.data.public.compas:whole",
        ),
    )
}


def all_sources() -> dict[str, Source]:
    """Every data set by name, those of the laboratory included where it is installed."""
    return {**SOURCES, **(plugin(PARTS, "data-sources") or {})}


def source_of(name: str) -> Source:
    """The data set of this name.

    >>> source_of("adult").files[0].name
    'adult.data'
    """
    known = all_sources()
    if name not in known:
        raise KeyError(f"No data set {name!r}. There are: {', '.join(known)}.")
    return known[name]
