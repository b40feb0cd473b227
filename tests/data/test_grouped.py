"""GroupedData: every way in, what it says of itself, how it splits, and every sentence."""

import numpy as np
import pandas as pd
import pytest

from tiltmeter import GroupedData, Question
from tiltmeter.data.group_shares import share_of

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 3)), RNG.integers(0, 2, 200)
G = np.where(np.arange(200) % 4 == 0, "b", "a")


def table():
    return pd.DataFrame(
        {
            "age": X[:, 0],
            "hours": X[:, 1],
            "sex": np.where(np.arange(200) % 2 == 0, "F", "M"),
            "race": np.where(np.arange(200) % 4 < 2, "x", "y"),
            "income": Y,
            "mass": np.full(200, 0.5),
        }
    )


class TestWaysIn:
    def test_arrays(self):
        data = GroupedData(X, Y, G)
        assert data.groups == ("a", "b")
        assert data.sizes == {"a": 150, "b": 50}
        assert data.imbalance == 3.0
        assert len(data) == 200

    def test_tensors_lists_and_columns_of_labels(self):
        torch = pytest.importorskip("torch")
        data = GroupedData(torch.tensor(X), torch.tensor(Y)[:, None], torch.tensor(G == "b").int())
        assert data.groups == (0, 1)
        assert data.y.shape == (200,)
        assert data.tensors()[0].dtype == torch.float64  # a tensor's own dtype stays
        assert GroupedData(X.tolist(), Y.tolist(), G.tolist()).tensors()[0].dtype == torch.float32

    def test_a_table_by_column_names(self):
        data = GroupedData(table(), "income", "sex", weights="mass", columns=["age", "hours"])
        assert data.x.shape == (200, 2)
        assert data.groups == ("F", "M")
        assert data.weights.tolist() == [0.5] * 200

    def test_intersections_are_tuples(self):
        data = GroupedData(table().drop(columns="mass"), "income", ["sex", "race"])
        assert data.groups == (("F", "x"), ("F", "y"), ("M", "x"), ("M", "y"))
        assert data.x.shape == (200, 2)
        same = GroupedData(X, Y, list(zip(table()["sex"], table()["race"], strict=True)))
        assert same.groups == data.groups
        np.testing.assert_array_equal(same.codes, data.codes)

    def test_a_list_with_one_column(self):
        assert GroupedData(table(), "income", ["sex"], columns=["age"]).groups == ("F", "M")

    def test_the_label_itself_is_a_group(self):
        assert GroupedData(X, Y, "label").groups == (0, 1)
        assert GroupedData(table(), "income", "label", columns=["age"]).groups == (0, 1)

    def test_a_torch_dataset_is_read_once(self):
        torch = pytest.importorskip("torch")

        class Points(torch.utils.data.Dataset):
            def __len__(self):
                return 200

            def __getitem__(self, i):
                return torch.tensor(X[i]), int(Y[i]), (str(G[i]), bool(i % 2))

        data = GroupedData(Points())
        assert data.groups == (("a", False), ("a", True), ("b", False))
        np.testing.assert_array_equal(data.y, Y)
        torch.testing.assert_close(data.x, torch.tensor(X))

    def test_labels_that_do_not_compare_keep_their_order(self):
        data = GroupedData(X, Y, ["one", 2] * 100)
        assert data.groups == ("one", 2)

    def test_the_order_can_be_chosen(self):
        data = GroupedData(X, Y, G, groups=["b", "a"])
        assert data.groups == ("b", "a")
        assert data.sizes == {"b": 50, "a": 150}


class TestGlance:
    def test_label_rates(self):
        data = GroupedData(X, Y, G)
        for group in "ab":
            assert data.label_rates[group][1] == pytest.approx(Y[group == G].mean())
        assert GroupedData(X, X[:, 0], G).label_rates == {}

    def test_text_and_html(self):
        text = repr(GroupedData(X, Y, np.where(G == "a", "<a>", "b")))
        assert text.splitlines()[0] == "<GroupedData 200 points of 3, 2 groups, imbalance 3>"
        assert "75.0 %" in text
        html = GroupedData(X, Y, np.where(G == "a", "<a>", "b"))._repr_html_()
        assert "&lt;a&gt;" in html
        assert html.count("<tr>") == 3

    def test_it_cannot_be_changed(self):
        with pytest.raises(AttributeError, match="immutable: build new data instead"):
            GroupedData(X, Y, G).y = Y


class TestSplit:
    def test_every_group_is_split_alike_and_nothing_is_lost(self):
        data = GroupedData(np.arange(200.0)[:, None], Y, G, weights=np.arange(200) + 1.0)
        train, held_out = data.split(held_out=0.4, seed=3)
        assert train.sizes == {"a": 90, "b": 30}
        assert held_out.sizes == {"a": 60, "b": 20}
        both = np.sort(np.concatenate([train.x[:, 0], held_out.x[:, 0]]))
        np.testing.assert_array_equal(both, np.arange(200))
        for part in (train, held_out):
            np.testing.assert_array_equal(part.weights, part.x[:, 0] + 1)
            np.testing.assert_array_equal([part.groups[c] for c in part.codes], G[part.x[:, 0].astype(int)])

    def test_the_seed_decides(self):
        data = GroupedData(X, Y, G)
        one, two, other = (data.split(0.4, seed=s)[1].x for s in (0, 0, 1))
        assert np.array_equal(one, two)
        assert not np.array_equal(one, other)

    @pytest.mark.parametrize("held_out", [0, 1, 1.5, True, "half"])
    def test_a_share_is_needed(self, held_out):
        with pytest.raises(ValueError, match="`held_out` should be a share strictly between 0 and 1"):
            GroupedData(X, Y, G).split(held_out)

    def test_no_part_may_lose_a_group(self):
        data = GroupedData(X, Y, np.where(np.arange(200) < 2, "rare", "rest"))
        with pytest.raises(ValueError, match="Found that group 'rare' with 2 points would have 0 held-out points"):
            data.split(0.1)


class TestWarnings:
    def test_small_groups_are_listed(self):
        with pytest.warns(UserWarning, match=r"fewer than 30 points give unreliable results: rare \(5\)."):
            GroupedData(X, Y, np.where(np.arange(200) < 5, "rare", "rest"))

    def test_small_parts_are_listed_once(self):
        with pytest.warns(UserWarning, match=r"b \(10\)") as caught:
            GroupedData(X, Y, G).split(0.2)
        assert len(caught) == 1


@pytest.mark.parametrize(
    ("make", "kind", "sentence"),
    [
        (lambda: GroupedData(X, Y[:5], G), ValueError, "Lengths should agree. Found 200 in x, 5 in y, 200 in group."),
        (lambda: GroupedData(X, Y, G, np.ones(3)), ValueError, "Lengths should agree. Found 200 in x, 200 in y, 200 in group, 3 in weights."),
        (lambda: GroupedData(np.where(X > 2.0, np.nan, X), Y, G), ValueError, "`x` should be finite. Found NaN or infinity in"),
        (lambda: GroupedData(X, np.where(Y, np.inf, 0), G), ValueError, "`y` should be finite. Found NaN or infinity in"),
        (lambda: GroupedData(X, Y, G, groups=["a", "b", "c"]), ValueError, "Every group should have points. Found none in group 'c'."),
        (lambda: GroupedData(X, Y, G, groups=["a"]), KeyError, "`groups` should list every group. Found points of 'b', and groups 'a'."),
        (lambda: GroupedData(X, Y, "sex"), TypeError, "`group` may be a name only for a DataFrame, or \"label\". Found group = 'sex'."),
        (lambda: GroupedData(X, Y, None), TypeError, "`group` should give the group of every point. Found None."),
        (lambda: GroupedData(X, None, G), TypeError, "`y` should give one number per point. Found None."),
        (lambda: GroupedData(X, Y.astype(str), G), TypeError, "`y` should hold numbers: encode other labels as 0, 1, 2, ..."),
        (lambda: GroupedData(X, np.ones((200, 2)), G), ValueError, "`y` should have one number per point. Found shape (200, 2)."),
        (lambda: GroupedData(G, Y, G), TypeError, "`x` should hold numbers. Found values of type"),
        (lambda: GroupedData(3.0, Y, G), ValueError, "`x` should have one point per row. Found a single number."),
        (lambda: GroupedData(X[:0], Y[:0], G[:0]), ValueError, "`x` should hold at least one point. Found none."),
        (lambda: GroupedData(X, Y, [None] * 200), ValueError, "Every point should belong to a group. Found the label None."),
        (lambda: GroupedData(X, Y, [{}] * 200), TypeError, "A group label should be hashable, such as text, a number or a tuple. Found dict."),
        (lambda: GroupedData(X, Y, G, -np.ones(200)), ValueError, "`weights` should be finite, not negative, and not all zero."),
        (lambda: GroupedData(X, Y, G, columns=["age"]), TypeError, "`columns` chooses columns of a DataFrame. Found x of type ndarray."),
        (lambda: GroupedData(X), TypeError, "Without y and group, `x` should be a Dataset that yields (x, y, group). Found ndarray."),
        (lambda: GroupedData([(1, 2)]), TypeError, "A Dataset should yield (x, y, group). Found something else in its first point."),
        (lambda: GroupedData(table(), "income", "height"), KeyError, "`group`: no column 'height'. There are: 'age', 'hours'"),
        (lambda: GroupedData(table(), "wage", "sex"), KeyError, "`y`: no column 'wage'."),
        (lambda: GroupedData(table(), "income", []), ValueError, "`group` should name at least one column. Found none."),
        (lambda: GroupedData(table(), "income", "sex"), TypeError, "Features should be numbers. Found other values in race: encode them first"),
        (lambda: GroupedData(table()[["sex", "income"]], "income", "sex"), ValueError, "No column is left for the features"),
        (lambda: GroupedData(X, Y, G).of_group("c"), KeyError, "No group 'c'. There are: 'a', 'b'."),
        (lambda: share_of(GroupedData(X, Y, G), {"c": 1.0}), KeyError, "`proportions`: no group 'c'. There are: 'a', 'b'."),
        (lambda: share_of(GroupedData(X, Y, G), {"a": -1.0}), ValueError, "`proportions` should be shares, not negative and not all zero."),
    ],
)  # fmt: skip
def test_sentences(make, kind, sentence):
    with pytest.raises(kind) as error:
        make()
    assert sentence in str(error.value.args[0])


def test_an_argument_of_another_name_is_answered_with_the_right_one():
    with pytest.raises(TypeError, match=r"`from_frame` has no argument `columns`. Did you mean features=\?"):
        GroupedData.from_frame({}, label="y", group="g", columns=["a"])


class TestQuestion:
    QUESTION = Question("approved", "repaid")

    def data(self):
        return GroupedData(np.zeros((200, 1)), [0, 1] * 100, ["a", "b"] * 100, question=self.QUESTION)

    def test_it_goes_with_the_points(self):
        import pickle

        data = self.data()
        parts = [
            *data.split(0.5),
            data.take([0, 1, 2]),
            data.with_points(np.ones((200, 2))),
            data.with_weights([1] * 200),
        ]
        parts.append(pickle.loads(pickle.dumps(data)))  # as multiprocessing does
        assert all(part.question == self.QUESTION for part in parts)
        assert data.with_question(None).question is None

    def test_it_is_stored_and_asked(self):
        stored = self.data().to_json()["question"]
        assert Question.from_json(stored) == self.QUESTION
        assert "question" not in self.data().with_question(None).to_json()

    def test_anything_else_is_refused(self):
        with pytest.raises(TypeError, match="`question` should be a Question"):
            GroupedData(np.zeros((200, 1)), [0, 1] * 100, ["a", "b"] * 100, question="approved")
        with pytest.raises(ValueError, match="`decision` and `outcome` go together"):
            Question(decision="approved")
