"""Histories of other loggers read as runs, and tables for papers."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tiltmeter as tm


def history():
    step = np.array([1, 10, 100])
    return pd.DataFrame({"step": step, "a": [1.0, 0.5, 0.4], "b": [0.9, 0.6, 0.5], "word": ["x", "y", "z"]})


def run():
    coords = {"time": [1.0, 2.0], "group": ["50 % & <a_b>", "b"]}
    loss = xr.DataArray([[1.0, 2.0], [0.25, 0.5]], dims=("time", "group"), coords=coords)
    return tm.Trajectory({"loss": loss, "loss_se": 0 * loss + 0.01}, "step", tm.record.Origin("training"))


class TestHistory:
    def test_a_table_answers_questions(self, tmp_path):
        history().to_csv(tmp_path / "h.csv", index=False)
        for table in (history(), tmp_path / "h.csv"):
            found = tm.export.from_table(table, {"loss": {"first": "a", "second": "b"}})
            assert found["loss"].sel(group="second").values.tolist() == [0.9, 0.6, 0.5]
            assert found.clock == "step"
            assert len(tm.leaders(found, "loss").changes) == 1

    def test_rows_without_a_value_are_no_looks(self):
        table = history()
        table.loc[1, ["a", "b"]] = np.nan
        assert tm.export.from_table(table, {"loss": {"a": "a", "b": "b"}})["loss"].time.values.tolist() == [1, 100]

    def test_event_files_come_back(self, tmp_path):
        pytest.importorskip("tensorboard")
        made = tm.export.from_table(history(), {"loss": {"a": "a", "b": "b"}})
        tm.export.write(made, tmp_path / "events")
        back = tm.export.from_tensorboard(tmp_path / "events")
        assert back["loss"].group.values.tolist() == ["a", "b"]
        np.testing.assert_allclose(back["loss"].values, made["loss"].values, rtol=1e-6)

    @pytest.mark.parametrize(
        ("make", "kind", "sentence"),
        [
            (lambda: tm.export.from_table(history(), {}), TypeError, "`curves` should map curves to columns by group"),
            (
                lambda: tm.export.from_table(history(), {"loss": "a"}),
                TypeError,
                "`curves` should map 'loss' to columns",
            ),
            (
                lambda: tm.export.from_table(history(), {"loss": {"a": "c"}}),
                KeyError,
                "No column 'c'. There are: step, a, b",
            ),
            (
                lambda: tm.export.from_table(history(), {"loss": {"a": "word"}}),
                TypeError,
                "Found other values in 'word'.",
            ),
            (lambda: tm.export.from_table(history()[::-1], {"loss": {"a": "a"}}), ValueError, "Times should increase"),
            (lambda: tm.export.from_tensorboard("nowhere"), FileNotFoundError, "No folder nowhere."),
        ],
    )
    def test_sentences(self, make, kind, sentence):
        with pytest.raises(kind) as error:
            make()
        assert sentence in str(error.value.args[0])


class TestLatex:
    def test_the_last_values_with_their_errors(self, tmp_path):
        text = tm.export.write(run(), tmp_path / "t.tex").read_text()
        assert r"50 \% \& \textless{}a\_b\textgreater{} & 0.2500 (0.0100) \\" in text
        assert r"b & 0.5000 (0.0100) \\" in text
        assert text.count("\\toprule") == text.count("\\bottomrule") == 1

    def test_sentences(self, tmp_path):
        with pytest.raises(ValueError, match="A table needs a curve of groups"):
            tm.export.write(tm.Trajectory({}, "step", tm.record.Origin("training")), tmp_path / "t.tex")
