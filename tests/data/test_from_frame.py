"""Tables of every kind as grouped data: the same numbers from each, and an account of everything dropped or encoded."""

import numpy as np
import pandas as pd
import pytest

from tiltmeter import GroupedData
from tiltmeter.record import Origin

RNG = np.random.default_rng(0)
ROWS = 240


def people(gaps=False):
    sex = np.where(np.arange(ROWS) % 3 == 0, "F", "M")
    table = pd.DataFrame(
        {
            "age": np.random.default_rng(1).normal(size=ROWS),
            "job": np.where(np.arange(ROWS) % 2 == 0, "cook", "clerk"),
            "owner": np.arange(ROWS) % 5 == 0,
            "sex": sex,
            "wage": np.where(np.arange(ROWS) % 4 < 2, ">50K", "<=50K"),
            "mass": np.full(ROWS, 0.5),
        }
    )
    if gaps:
        table.loc[0:59, "age"] = np.nan  # 20 of F, 40 of M
        table.loc[230:, "job"] = None
    return table


def same(one, two):
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.y, two.y)
    np.testing.assert_array_equal(one.codes, two.codes)
    assert one.groups == two.groups
    assert one.reading == two.reading


def read(table, **settings):
    return GroupedData.from_frame(table, **{"label": "wage", "group": "sex", "weights": "mass", **settings})


class TestWaysIn:
    def test_columns_become_numbers_and_say_so(self):
        table = people()
        data = read(table)
        assert data.x.shape == (ROWS, 4)  # age, two jobs, owner
        np.testing.assert_array_equal(data.x[:, 0], table["age"].to_numpy(np.float32))
        np.testing.assert_array_equal(data.x[:, 2], table["job"] == "cook")
        np.testing.assert_array_equal(data.y, table["wage"] == ">50K")
        assert data.reading.labels == ("<=50K", ">50K")
        assert data.reading.words == {"job": ("clerk", "cook")}
        assert data.weights.tolist() == [0.5] * ROWS
        assert "Labels: <=50K = 0, >50K = 1 (in sorted order; positive= sets which is 1)." in str(data.reading)

    @pytest.mark.parametrize("gaps", [False, True])
    def test_every_library_gives_the_same(self, gaps, tmp_path):
        pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
        table = people(gaps)
        with pytest.warns(UserWarning, match="Dropped 70") if gaps else _nothing():
            expected = read(table)
        others = [pl.from_pandas(table), pl.from_pandas(table).lazy(), pa.Table.from_pandas(table)]
        others.append(table.astype({"sex": "category", "job": "category", "wage": "category"}))
        others.append(table.convert_dtypes())
        table.to_csv(tmp_path / "t.csv", index=False)
        table.to_parquet(tmp_path / "t.parquet")
        table.to_feather(tmp_path / "t.feather")
        others += [tmp_path / "t.csv", str(tmp_path / "t.parquet"), tmp_path / "t.feather"]
        for other in others:
            with pytest.warns(UserWarning, match="Dropped 70") if gaps else _nothing():
                same(read(other), expected)

    def test_hugging_face(self, tmp_path):
        datasets = pytest.importorskip("datasets")
        found = datasets.Dataset.from_pandas(people())
        same(read(found), read(people()))
        found.save_to_disk(str(tmp_path / "kept"))
        same(read(tmp_path / "kept"), read(people()))
        with pytest.raises(TypeError, match=r"one part of a data set. Found several: choose one of train"):
            read(datasets.DatasetDict({"train": found}))

    def test_intersections_and_chosen_features(self):
        data = read(people(), group=["sex", "job"], features=["age"])
        assert data.groups == (("F", "clerk"), ("F", "cook"), ("M", "clerk"), ("M", "cook"))
        assert data.x.shape == (ROWS, 1)

    def test_whole_numbers_stay_whole_and_measurements_stay(self):
        table = people().assign(wage=np.arange(ROWS) % 3)
        assert read(table).y.dtype == np.int64
        assert read(table.assign(wage=RNG.normal(size=ROWS))).y.dtype == np.float64
        assert read(table.assign(wage=np.arange(ROWS) % 2 == 0)).y.tolist() == (np.arange(ROWS) % 2 == 0).tolist()

    def test_npz(self, tmp_path):
        x, y = RNG.normal(size=(80, 2, 3)), np.arange(80) % 2
        np.savez(tmp_path / "a.npz", x=x, y=y, group=["a", "b"] * 40)
        data = GroupedData.from_npz(tmp_path / "a.npz")
        assert data.sizes == {"a": 40, "b": 40}
        np.testing.assert_array_equal(data.x, x)


class TestPositive:
    """Sorted order would make "denied" the yes."""

    def table(self):
        return people().assign(wage=np.where(np.arange(ROWS) % 4 == 0, "approved", "denied"))

    def test_the_declared_label_becomes_1_and_its_name_stays(self):
        data = read(self.table(), positive="approved")
        np.testing.assert_array_equal(data.y, self.table()["wage"] == "approved")
        assert data.y.dtype == np.int64
        assert (data.reading.labels, data.reading.positive) == (("denied", "approved"), "approved")
        assert "Labels: denied = 0, approved = 1 (the positive label)." in str(data.reading)
        train, held_out = data.split(0.4)
        assert train.to_json()["reading"]["positive"] == held_out.to_json()["reading"]["positive"] == "approved"
        assert data.label_rates["F"][1] == pytest.approx(0.25)

    def test_undeclared_the_sorted_order_decides_and_says_so(self):
        data = read(self.table())
        np.testing.assert_array_equal(data.y, self.table()["wage"] == "denied")
        assert data.reading.positive is None
        assert data.to_json()["reading"]["positive"] is None

    @pytest.mark.parametrize("values", [(1, 2), (1.0, 2.0), (True, False), (-1, 1)])
    def test_numbers_and_truth_values_too(self, values):
        yes, no = values
        table = people().assign(wage=np.where(np.arange(ROWS) % 4 == 0, yes, no))
        for positive in (yes, str(yes)):
            np.testing.assert_array_equal(read(table, positive=positive).y, np.arange(ROWS) % 4 == 0)
        assert read(table, positive=no).y.mean() == 0.75

    def test_categories_and_other_libraries(self):
        pl = pytest.importorskip("polars")
        expected = read(self.table(), positive="approved")
        same(read(self.table().astype({"wage": "category"}), positive="approved"), expected)
        same(read(pl.from_pandas(self.table()), positive="approved"), expected)


class TestMissing:
    def test_dropped_rows_are_counted_by_group_in_the_warning_and_the_origin(self):
        table = people(gaps=True)
        with pytest.warns(UserWarning, match="Dropped 70") as said:
            data = read(table)
        message = str(said[0].message)
        assert message.startswith(
            "Dropped 70 of 240 rows with missing values (F: 23 of 80, M: 47 of 160; missing in age: 60, job: 10)."
        )
        assert len(data) == 170
        train, held_out = data.split(0.4)
        origin = Origin("training", problem={"held_out": held_out.to_json()})
        assert origin.problem["held_out"]["reading"]["dropped"] == [["F", 23], ["M", 47]]
        assert train.reading == data.reading

    def test_a_missing_group_is_counted_too(self):
        table = people()
        table.loc[:9, "sex"] = None
        with pytest.warns(UserWarning, match="no group: 10 of 10; missing in sex: 10"):
            assert len(read(table)) == ROWS - 10

    def test_imputed_values_are_marked(self):
        table = people(gaps=True)
        data = read(table, missing="impute")
        assert len(data) == ROWS
        assert data.x.shape[1] == 6  # age, age missing, clerk, cook, missing, owner
        median = np.float32(table["age"].median())
        assert (data.x[:60, 0] == median).all()
        assert data.x[:, 1].sum() == 60
        assert data.reading.imputed == {"age": 60, "job": 10}

    def test_imputing_keeps_nothing_without_a_label(self):
        table = people()
        table.loc[:4, "wage"] = None
        with pytest.warns(UserWarning, match="Dropped 5 of 240"):
            assert len(read(table, missing="impute")) == ROWS - 5

    def test_who_imputes_is_not_told_to_impute(self):
        """Only what made rows go is named: ages were filled in."""
        table = people(gaps=True)
        table.loc[100:132, "sex"] = None
        with pytest.warns(UserWarning, match="Dropped 33") as said:
            read(table, missing="impute")
        assert str(said[0].message) == (
            "Dropped 33 of 240 rows with missing values (no group: 33 of 33; missing in sex: 33). Rows without label, "
            'group or weight are always dropped; missing="error" refuses.'
        )

    def test_error_names_the_columns(self):
        with pytest.raises(ValueError, match=r"Found some missing in age \(60\), job \(10\)."):
            read(people(gaps=True), missing="error")

    def test_nothing_is_said_where_nothing_is_missing(self, recwarn):
        read(people())
        assert not recwarn.list


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: read(people(), label="pay"), KeyError, "`label`: no column 'pay'. There are: 'age', 'job'"),
        (lambda: read(people(), group="height"), KeyError, "`group`: no column 'height'."),
        (lambda: read(people(), group=[]), ValueError, "`group` should name at least one column. Found none."),
        (lambda: read(people(), features="age"), TypeError, "`features` should be a list of columns. Found str."),
        (lambda: read(people(), features=["size"]), KeyError, "`features`: no column 'size'."),
        (lambda: read(people()[["sex", "wage", "mass"]]), ValueError, "No column is left for the features"),
        (lambda: read(people(), missing="ignore"), ValueError, "`missing` should be one of 'drop', 'impute', 'error'. Found missing = 'ignore'."),
        (lambda: read(people(), positive="yes"), KeyError, "`positive`: no label 'yes' in column 'wage'. There are: '<=50K', '>50K'."),
        (lambda: read(people(), label="age", weights=None, positive=0.5), KeyError, "`positive`: no label 0.5 in column 'age'. There are: "),
        (lambda: read(people().assign(wage=np.arange(ROWS) % 3), positive=1), ValueError, "`positive` is for two labels. Found 3 in column 'wage'."),
        (lambda: read(people()[:0]), ValueError, "`frame` should have at least one row. Found none."),
        (lambda: read([1, 2]), TypeError, "`frame` should be a table of pandas, polars, Arrow or datasets, or the path of one. Found list."),
        (lambda: read("t.xlsx"), ValueError, "A table should end in .csv, .parquet, .feather, .arrow. Found 't.xlsx'."),
        (lambda: read("none.csv"), FileNotFoundError, "No file none.csv."),
        (lambda: read(people().assign(age=None)), ValueError, "should have rows without missing values. Found none."),
        (lambda: read(people().assign(age=pd.Timestamp(0))), TypeError, "`features`: column 'age' holds datetime64"),
        (lambda: read(pd.concat([people().assign(job=[f"n{i}-{j}" for i in range(ROWS)]) for j in range(5)])), ValueError, "at most 1,000 different values. Found 1,200 in 'job'"),
        (lambda: read(people().assign(age=np.inf)), ValueError, "`x` should be finite."),
        (lambda: GroupedData.from_npz("none.npz"), FileNotFoundError, "No file none.npz."),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence):
    with pytest.raises(kind) as error:
        make()
    assert sentence in str(error.value.args[0])


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "npz"])
def test_damaged_files_are_refused_in_a_sentence(tmp_path, ending):
    path = tmp_path / f"bad.{ending}"
    path.write_bytes(b"\x00\xff\xfe broken \x80")
    with pytest.raises((ValueError, KeyError), match=r"bad\.|no column"):
        GroupedData.from_npz(path) if ending == "npz" else read(path)


def test_objects_in_npz_files_are_never_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object), y=[1], group=[1])
    with pytest.raises(ValueError, match=r"should hold plain arrays. Found Python objects: they are never loaded."):
        GroupedData.from_npz(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", x=[1], y=[1])
    with pytest.raises(KeyError, match=r"`group`: no array 'group' in b.npz. There are: 'x', 'y'."):
        GroupedData.from_npz(tmp_path / "b.npz")


class _nothing:
    def __enter__(self):
        return None

    def __exit__(self, *args):
        return None


class TestLike:
    """A publisher's train and test files, read alike."""

    def tables(self):
        def table(count, jobs, seed):
            draw = np.random.default_rng(seed)
            frame = pd.DataFrame({"age": draw.normal(size=count), "job": draw.choice(jobs, count)})
            frame["sex"] = draw.choice(["F", "M"], count)
            frame["wage"] = draw.choice(["low", "high"], count)
            return frame

        return table(300, ["clerk", "cook", "smith"], 1), table(200, ["cook", "clerk"], 2)

    def test_columns_and_labels_are_those_of_the_other(self):
        train, test = self.tables()
        names = {"label": "wage", "group": "sex"}
        first = GroupedData.from_frame(train, **names, positive="high")
        assert first.reading.columns == ("age", "job = clerk", "job = cook", "job = smith")
        alone = GroupedData.from_frame(test, **names, positive="high")
        assert alone.x.shape[1] == 3
        second = GroupedData.from_frame(test[["job", "wage", "sex", "age"]], **names, like=first)
        assert second.reading.columns == first.reading.columns
        np.testing.assert_array_equal(second.x[:, [0, 1, 2]], alone.x)
        np.testing.assert_array_equal(second.y, alone.y)
        assert second.reading.positive == "high"
        np.testing.assert_array_equal(second.reading.kept_rows, np.arange(200))

    def test_points_know_their_rows_after_a_split(self):
        table, _ = self.tables()
        table.loc[[3, 7], "age"] = None
        with pytest.warns(UserWarning, match="Dropped 2"):
            data = GroupedData.from_frame(table, label="wage", group="sex")
        for part in data.split(0.3, seed=1):
            rows = table.iloc[part.reading.kept_rows]
            np.testing.assert_array_equal(part.x[:, 0], rows["age"].to_numpy(np.float32))
            assert [part.groups[code] for code in part.codes] == rows["sex"].tolist()

    def test_unknown_words_are_zeros_and_said(self):
        test, train = self.tables()
        names = {"label": "wage", "group": "sex"}
        first = GroupedData.from_frame(train, **names)
        with pytest.warns(
            UserWarning, match=r"Column job has 1 values in \d+ rows that `like` does not have, as 'smith'"
        ):
            second = GroupedData.from_frame(test, **names, like=first)
        assert (second.x[(test.job == "smith").to_numpy()][:, 1:] == 0).all()

    def test_medians_are_those_of_the_other(self):
        train, test = self.tables()
        train.loc[:20, "age"] = np.nan
        test.loc[:3, "age"] = np.nan
        names = {"label": "wage", "group": "sex", "missing": "impute"}
        first = GroupedData.from_frame(train, **names)
        second = GroupedData.from_frame(test, **names, like=first)
        assert second.reading.columns == first.reading.columns
        np.testing.assert_allclose(second.x[:4, 0], train.age.median(), rtol=1e-6)
        whole = GroupedData.from_frame(test[4:], **names, like=first)
        assert whole.x.shape[1] == first.x.shape[1]

    def test_sentences(self):
        train, test = self.tables()
        names = {"label": "wage", "group": "sex"}
        first = GroupedData.from_frame(train, **names)
        with pytest.raises(KeyError, match=r"should have the features of `like`\. Found no column 'age'"):
            GroupedData.from_frame(test.drop(columns="age"), **names, like=first)
        with pytest.raises(ValueError, match=r"should have the labels of `like` \(high, low\)\. Found 'none'"):
            GroupedData.from_frame(test.assign(wage="none"), **names, like=first)
        with pytest.raises(TypeError, match="`like` should be data that `from_frame` read"):
            GroupedData.from_frame(test, **names, like=GroupedData(first.x, first.y, first.codes))
        with pytest.raises(ValueError, match="should miss values only where `like` does"):
            GroupedData.from_frame(
                test.assign(age=np.where(test.index < 3, np.nan, 1.0)), **names, missing="impute", like=first
            )
