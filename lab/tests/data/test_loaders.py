"""Loaders, on tiny files in the true formats: what they read, and every sentence about a file that is not right."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from data_sources import EVERY, home_of
from tiltmeter.data.public.adult import adult
from tiltmeter.data.public.compas import compas, compas_table
from tiltmeter.data.public.presence import check, data_folder, is_present
from tiltmeter_lab.data.bar import bar
from tiltmeter_lab.data.celeba import celeba
from tiltmeter_lab.data.cifar10 import cifar10
from tiltmeter_lab.data.german import german
from tiltmeter_lab.data.mnist import fashion_mnist, mnist, read_idx
from tiltmeter_lab.data.utkface import utkface
from tiltmeter_lab.data.waterbirds import waterbirds


def test_the_folder_is_the_users_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TILTMETER_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("TILTMETER_DATA")
    assert data_folder().parts[-2:] == ("tiltmeter", "data")


class TestPictures:
    @pytest.mark.parametrize(("name", "load"), [("mnist", mnist), ("fashion-mnist", fashion_mnist)])
    def test_idx(self, write, name, load):
        write(name)
        train, test = load("train"), load("test")
        assert train.x.shape == (20, 28, 28)
        assert train.x.dtype == np.uint8
        assert test.y.tolist() == list(range(10))
        assert len(train.classes) == 10
        assert train.floats().max() <= 1.0
        standard = train.standard()
        assert standard.dtype == np.float32
        assert abs(standard.mean()) < 1e-5
        assert standard.std() == pytest.approx(1.0, abs=1e-5)

    def test_unpacked_files_will_do(self, write):
        folder = write("mnist")
        before = mnist("test").x
        for path in list(folder.iterdir()):
            (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
            path.unlink()
        np.testing.assert_array_equal(mnist("test").x, before)

    def test_cifar10_reads_label_then_channels(self, write):
        folder = write("cifar10")
        test = cifar10("test")
        raw = np.frombuffer((folder / "test_batch.bin").read_bytes(), np.uint8)
        assert test.x.shape == (20, 3, 32, 32)
        assert test.x[1, 2, 5, 7] == raw[3073 + 1 + 2 * 1024 + 5 * 32 + 7]
        assert test.classes[int(test.y[3])] == "cat"
        assert len(cifar10("train")) == 100

    def test_cifar10_as_its_archive_unpacks(self, write):
        folder = write("cifar10")
        inner = folder / "cifar-10-batches-bin"
        inner.mkdir()
        for path in folder.glob("*.bin"):
            path.rename(inner / path.name)
        assert len(cifar10("test")) == 20

    def test_classes_by_name_and_number(self, write):
        write("cifar10")
        images = cifar10("test")
        assert images.numbers(["deer", 2]) == (4, 2)
        assert images.numbers("truck") == (9,)
        for bad in ("lion", 10, -1, 2.5):
            with pytest.raises(KeyError, match=r"No class"):
                images.numbers([bad])

    def test_only_two_parts(self):
        for load in (mnist, cifar10):
            with pytest.raises(ValueError, match=r"`part` should be 'train' or 'test'. Found part = 'valid'"):
                load("valid")


class TestTables:
    def test_adult(self, write):
        write("adult")
        train, held_out = adult()
        assert train.groups == ("Female", "Male")
        assert train.label_rates["Male"][1] == held_out.label_rates["Male"][1] > 0  # labels of the test end in a dot
        np.testing.assert_allclose(train.x.mean(0), 0.0, atol=1e-5)
        np.testing.assert_allclose(train.x.std(0), 1.0, atol=1e-5)
        assert adult(["sex", "race"])[0].groups[0] == ("Female", "Black")
        with_sex, without = adult()[0].x.shape[1], adult(sensitive_features=False)[0].x.shape[1]
        assert with_sex == without + 2

    def test_look_is_scaled_by_what_is_trained_on(self, write):
        folder = write("adult")
        text = (folder / "adult.test").read_text().replace("39, State-gov", "139, Martian")
        (folder / "adult.test").write_text(text)
        train, held_out = adult()
        assert held_out.x.shape[1] == train.x.shape[1]
        ages = train.x[:, 0]
        scale = (54 - 28) / (ages.max() - ages.min())
        assert (held_out.x[:, 0].max() - ages.max()) * scale == pytest.approx(139 - 54, rel=1e-4)

    def test_compas_keeps_the_usual_rows(self, write):
        write("compas")
        assert len(compas_table(filtered=False)) == 420
        assert compas_table()["days_b_screening_arrest"].abs().max() == 30
        train, held_out = compas()
        assert train.groups == ("African-American", "Caucasian")
        assert len(train) + len(held_out) == len(compas_table()) * 2 // 3
        assert compas(sensitive_features=True)[0].x.shape[1] == train.x.shape[1] + 2
        with pytest.raises(KeyError, match=r"`races`: no 'Martian'. There are: African-American, Caucasian, Other"):
            compas(("Martian",))

    def test_compas_parts_share_no_row_and_the_seed_decides(self, write):
        folder = write("compas")
        lines = (folder / "compas-scores-two-years.csv").read_text().splitlines()
        numbered = [lines[0], *(line.replace(",69,", f",{20 + i},").replace(",24,", f",{20 + i},").replace(",31,", f",{20 + i},") for i, line in enumerate(lines[1:]))]  # fmt: skip
        (folder / "compas-scores-two-years.csv").write_text("\n".join(numbered) + "\n")
        train, held_out = compas()
        columns = np.concatenate([train.x[:, 0], held_out.x[:, 0]])
        assert len(np.unique(columns.round(5))) == len(columns)
        np.testing.assert_array_equal(compas(seed=3)[1].x, compas(seed=3)[1].x)
        assert not np.array_equal(compas(seed=3)[1].y, compas(seed=4)[1].y)

    def test_german(self, write):
        write("german")
        train, held_out = german()
        assert train.sizes == {"female": 70, "male": 70}
        assert held_out.label_rates["male"] == {0: 0.0, 1: 1.0}
        assert german("age")[0].groups == ("old", "young")


class TestCelebA:
    def test_the_publishers_lists(self, write):
        folder = write("celeba")
        train, test = celeba("train"), celeba("test")
        assert (len(train), len(celeba("valid")), len(test)) == (40, 10, 10)
        line = (folder / "list_attr_celeba.txt").read_text().splitlines()[2 + 55].split()
        assert test.files[5] == line[0]
        assert test.has("Bangs")[5] == (line[2] == "1")
        with pytest.raises(KeyError, match=r"No attribute 'Hat'. There are: Bald, Bangs, Male"):
            train.has("Hat")

    def test_attributes_alone_are_split_by_number(self, here):
        (here / "celeba-attributes").mkdir()
        rows = [f"{i:06}.jpg,1,-1" for i in (1, 162770, 162771, 182637, 182638, 202599)]
        (here / "celeba-attributes" / "celeba.csv").write_text("filename,Bald,Male\n" + "\n".join(rows))
        assert [len(celeba(part)) for part in ("train", "valid", "test")] == [2, 2, 2]
        with pytest.raises(
            FileNotFoundError, match=r"needs the folder img_align_celeba in .*: its publishers provide it"
        ):
            celeba().pictures([0])

    def test_photographs(self, write):
        image = pytest.importorskip("PIL.Image")
        folder = write("celeba") / "img_align_celeba"
        folder.mkdir()
        red = np.zeros((218, 178, 3), np.uint8)
        red[..., 0] = 200
        image.fromarray(red).save(folder / "000003.jpg", quality=95)
        x = celeba().pictures([2], size=8)
        assert x.shape == (1, 3, 8, 8)
        assert np.abs(x[0, 0].astype(int) - 200).max() <= 3  # a JPEG is exact to a few grey levels
        assert x[0, 1].max() <= 5
        with pytest.raises(FileNotFoundError, match=r"There is no image 000001.jpg in .*: unpack the data set again"):
            celeba().pictures([0])
        (folder / "000001.jpg").write_bytes(b"half an imag")
        with pytest.raises(ValueError, match=r"should be a complete image file: unpack the data set again"):
            celeba().pictures([0])

    def test_a_name_that_leads_out_is_refused(self, write):
        pytest.importorskip("PIL.Image")
        folder = write("celeba")
        (folder / "img_align_celeba").mkdir()
        for file in ("list_attr_celeba.txt", "list_eval_partition.txt"):
            (folder / file).write_text((folder / file).read_text().replace("000001.jpg", "../../secret.jpg"))
        with pytest.raises(ValueError, match=r"Image files should lie in"):
            celeba().pictures([0])


def test_waterbirds(write):
    image = pytest.importorskip("PIL.Image")
    folder = write("waterbirds")
    train = waterbirds("train")
    assert (len(train), len(waterbirds("valid"))) == (120, 40)
    assert sorted(set(train.groups)) == [
        *("landbird on land", "landbird on water", "waterbird on land", "waterbird on water")
    ]
    (folder / "001.Gull").mkdir()
    for i in range(40):
        image.fromarray(np.full((20, 30, 3), 6 * i, np.uint8)).save(folder / "001.Gull" / f"{i}.jpg")
    data = train.grouped(np.arange(40), size=4)
    assert data.x.shape == (40, 3, 4, 4)
    assert data.x[20].mean() == pytest.approx(120 / 255, abs=0.02)
    assert data.sizes["waterbird on land"] == 10


def test_faces_with_their_age_in_the_name(write):
    """One name lacks a field and is left out; the pictures are made here, of one colour."""
    image = pytest.importorskip("PIL.Image")
    folder = write("utkface") / "UTKFace"
    faces = utkface()
    assert len(faces) == 60
    assert (faces.age[:3].tolist(), faces.sex[:2].tolist(), faces.race[:5].tolist()) == (
        [20, 21, 22],
        [0, 1],
        [0, 1, 2, 3, 4],
    )
    for name in faces.files:
        image.fromarray(np.full((20, 20, 3), 90, np.uint8)).save(folder / str(name), format="JPEG")
    data = faces.grouped(np.arange(60), "race", older_than=40, size=4)
    assert data.x.shape == (60, 3, 4, 4)
    assert data.y.sum() == 39
    assert set(data.sizes) == {"White", "Black", "Asian", "Indian", "others"}
    assert set(faces.grouped(np.arange(60), size=4).sizes) == {"male", "female"}
    with pytest.raises(ValueError, match="`group` should be 'sex' or 'race'"):
        faces.grouped([0], "age")
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(ValueError, match=r"should hold files named age_sex_race_date\.jpg\.chip\.jpg\. Found none\."):
        utkface()


def test_actions_by_the_names_of_files(write):
    folder = write("bar")
    assert (len(bar()), len(bar("test"))) == (60, 24)
    assert np.bincount(bar().y).tolist() == [10] * 6
    for path in (folder / "test").iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="should hold files named after actions"):
        bar("test")


ALL = EVERY


@pytest.mark.parametrize("name", ALL)
def test_present_absent_and_what_to_do(write, name):
    assert not is_present(name)
    absent = check(name)
    assert absent.state == "absent"
    assert f"tiltmeter data get {name}" in absent.note or "its publishers provide it" in absent.note
    write(name)
    assert is_present(name)
    assert check(name).state == "present"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mnist", "train-images-idx3-ubyte.gz"),
        ("fashion-mnist", "t10k-labels-idx1-ubyte.gz"),
        ("cifar10", "data_batch_3.bin"),
        ("celeba", "list_attr_celeba.txt"),
        ("celeba", "list_eval_partition.txt"),
    ],
)
def test_a_partial_file_is_seen_without_a_checksum(write, name, file):
    path = write(name) / file
    path.write_bytes(path.read_bytes()[:-9])
    found = check(name)
    assert found.state == "wrong"
    by_hand = name == "celeba"  # `tiltmeter data get` would only say so
    assert ("replace it: its publishers provide it" if by_hand else f"tiltmeter data get {name}") in found.note


@pytest.mark.parametrize("name", ALL)
def test_a_folder_in_place_of_a_file_is_said_in_a_sentence(write, name):
    folder = write(name)
    for path in [path for path in folder.iterdir() if path.is_file()]:
        path.unlink()
        path.mkdir()
    if name == "celeba":  # it looks for a file, and finds none
        assert check(name).state == "absent"
    elif name in ("utkface", "bar"):  # no file of their own beside the photographs
        assert check(name).state == "present"
    else:
        assert "should be a file that can be read. Found: Is a directory." in check(name).note


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "the number of files and the names of attributes first"),
        ("2\nMale Young\n", "2 complete lines of a file name and 2 attributes, -1 or 1. Found"),
        ("2\nMale Young\n1.jpg 1 x\n2.jpg 1 1\n", "-1 or 1. Found 'x' at row 1 below the header"),
        ("2\nMale Young\n1.jpg 1 -1\n2.jpg 1 5\n", "-1 or 1. Found '5' at row 2 below the header"),
        ("1\nMale\nfirst.jpg 1\n", "where file names are no numbers. Found 'first'"),
        ("\x00\xff\n", "the number of files and the names of attributes first"),
    ],
)
def test_lists_of_celeba_that_make_no_sense(write, text, found):
    folder = write("celeba")
    (folder / "list_attr_celeba.txt").write_bytes(text.encode("latin-1"))
    (folder / "list_eval_partition.txt").unlink()
    assert check("celeba").state == "wrong"
    assert found in check("celeba").note


@pytest.mark.parametrize(
    "text", ["", "filename,Male\n", "filename,Male\n1.jpg,x\n", "filename,Male\n1.jpg,0.5\n", "\xff\xfe"]
)
def test_a_table_of_celeba_that_makes_no_sense(here, text):
    (here / "celeba-attributes").mkdir()
    (here / "celeba-attributes" / "celeba.csv").write_bytes(text.encode("latin-1"))
    found = check("celeba")
    assert found.state == "wrong"
    assert "celeba.csv should hold file names, then complete columns of attributes" in found.note


@pytest.mark.parametrize("row", ["a.jpg,x,0,1", "a.jpg,,0,1", "a.jpg,7,0,1", "a.jpg,1,3,1", "a.jpg,1,0,2", ""])
def test_a_list_of_waterbirds_that_makes_no_sense(write, row):
    (write("waterbirds") / "metadata.csv").write_text(f"img_filename,y,split,place\n{row}\n")
    found = check("waterbirds")
    assert found.state == "wrong"
    assert "metadata.csv should hold whole numbers from 0 to" in found.note


def test_a_blank_folder_is_none(monkeypatch):
    monkeypatch.setenv("TILTMETER_DATA", "  ")
    blank = data_folder()
    monkeypatch.delenv("TILTMETER_DATA")
    assert blank == data_folder()


@pytest.mark.parametrize("name", ["adult", "german"])
def test_another_file_is_seen_by_its_checksum(write, monkeypatch, name):
    path = write(name)
    source = home_of(name)[name]
    files = tuple(replace(file, md5="5d7c39d7b8804f071cdd1f2a7c460872") for file in source.files)
    monkeypatch.setitem(home_of(name), name, replace(source, files=files))
    found = check(name)
    assert found.state == "wrong"
    assert found.note.startswith(f"{path / files[0].name} should hold the published content, with md5 5d7c39d7")
    assert found.note.endswith(f"delete it and run `tiltmeter data get {name}`.")


def test_a_table_without_a_checksum_is_known_by_its_rows(write, monkeypatch):
    write("compas")
    source = home_of("compas")["compas"]
    for rows, state in ((420, "present"), (7214, "wrong")):
        monkeypatch.setitem(home_of("compas"), "compas", replace(source, files=(replace(source.files[0], rows=rows),)))
        assert check("compas").state == state
    assert "should hold 7,214 rows of a table. Found 420" in check("compas").note


@pytest.mark.parametrize(("name", "column"), [("compas", "is_recid"), ("waterbirds", "place")])
def test_a_column_that_is_missing_is_named(write, name, column):
    path = next(write(name).glob("*.csv"))
    path.write_text(path.read_text().replace(f"{column},", "other,", 1))
    found = check(name)
    assert found.state == "wrong"
    assert column in found.note


def test_cifar10_with_other_classes_is_refused(write):
    path = write("cifar10") / "test_batch.bin"
    path.write_bytes(b"\x01" + path.read_bytes()[1:])
    assert "every one of its ten classes equally often" in check("cifar10").note


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "starts with 0, 0, 8"),
        (bytes([0, 0, 9, 1, 0, 0, 0, 0]), "starts with 0, 0, 8"),
        (bytes([0, 0, 8, 3, 0, 0]), "header of 3 sizes takes 16 bytes. Found 6"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 3, 1]), "3 bytes after the header. Found 1"),
        (bytes([0, 0, 8, 2, *[255] * 8]), "4294967295 x 4294967295 bytes after the header. Found 0"),
    ],
)
def test_idx_sentences(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_idx(data)
