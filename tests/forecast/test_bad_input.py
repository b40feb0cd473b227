"""Bad input of a forecast, in one sentence each and before anything expensive."""

import warnings
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

import tiltmeter as tm


def parted(settings):
    """What belongs to the recipe, and what says how to calculate."""
    how = {name: settings[name] for name in ("sample", "seed") if name in settings}
    given = {name: value for name, value in settings.items() if name not in how}
    rate = {} if "schedule" in given else {"lr": 0.1}
    return {**rate, "steps": 10, "batch": None, "loss": tm.Square(), **given}, how


def asked(data, **settings):
    given, how = parted(settings)
    return tm.forecast(nn.Linear(6, 1), *data, tm.Recipe(**given), method=tm.methods.Kernel(**how))


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"lr": 0.0}, "`lr` should be a positive number. Found lr = 0.0."),
            ({"lr": "fast"}, "`lr` should be a positive number"),
            (
                {"lr": abs},
                "`lr` should be a positive number: give a function of the step as schedule=. Found lr = <built",
            ),
            (
                {"schedule": lambda step: -1.0},
                "The schedule of `lr` should give non-negative numbers. Found -1.0 at step = 0.",
            ),
            ({"steps": 0}, "`steps` should be a positive integer. Found steps = 0."),
            ({"momentum": 1.0}, "`momentum` should lie between 0 and 1"),
            ({"weight_decay": -1.0}, "`weight_decay` should not be negative."),
            ({"sample": 1}, "`sample` should be an integer of at least 2. Found sample = 1."),
            ({"weights": {"b": -1.0}}, "`weights` should be finite and not negative."),
            ({"weights": {"a": 0.0, "b": 0.0}}, "`weights` should leave something to train on."),
            ({"weights": {"b": "2"}}, "`weights` should be finite and not negative. Found '2' for 'b'."),
            ({"batch": 0}, "`batch` should be a positive integer. Found batch = 0."),
            ({"batch": 2.5}, "`batch` should be a positive integer. Found batch = 2.5."),
            ({"seed": -1}, "`seed` should be an integer from 0. Found seed = -1."),
            ({"proportions": {"a": -1.0}}, "`proportions` should be shares"),
        ],
    )
    def test_values(self, two_labels, settings, said):
        with pytest.raises(ValueError, match="should") as caught:
            asked(two_labels, **settings)
        assert said in str(caught.value)
        if "sample" not in settings and "seed" not in settings:
            given, how = parted(settings)
            kernels = tm.tangent(nn.Linear(6, 1), *two_labels)
            with pytest.raises(ValueError, match="should") as caught:
                kernels.forecast(tm.Recipe(**given), **how)
            assert said in str(caught.value)

    @pytest.mark.parametrize(
        "settings",
        [
            {"schedule": lambda step: -1.0},
            {"batch": 0},
            {"weights": {"z": 1.0}},
            {"loss": nn.MSELoss()},
        ],
    )
    def test_questions_are_checked_before_the_kernels(self, two_labels, monkeypatch, settings):
        def never(*_, **__):
            raise AssertionError("The kernels were computed first.")

        monkeypatch.setattr(import_module("tiltmeter.forecast.kernel.forecast_by_kernel"), "tangent", never)
        with pytest.raises((ValueError, TypeError, KeyError)):
            asked(two_labels, **settings)

    def test_types_and_names(self, two_labels):
        train, held_out = two_labels
        model = nn.Linear(6, 1)
        with pytest.raises(TypeError, match=r"`model` should make a torch.nn.Module. Found that it makes int."):
            tm.forecast(lambda: 3, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        with pytest.raises(TypeError, match=r"`model` should be a function that makes a new model"):
            tm.forecast(model, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()), seeds=2)
        with pytest.raises(TypeError, match=r"`train` should be GroupedData. Found ndarray."):
            tm.forecast(model, train.x, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        with pytest.raises(KeyError, match="'c'"):
            tm.forecast(
                model, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, weights={"c": 2.0}, loss=tm.Square())
            )
        with pytest.raises(ValueError, match=r"Found MSELoss: use Square\(\) with twice the learning rate"):
            tm.forecast(
                model, train, held_out, tm.Recipe(lr=0.1, steps=10, loss=nn.MSELoss()), method=tm.methods.Kernel()
            )
        recipe = tm.Recipe(lr=0.1, steps=10, loss=nn.BCEWithLogitsLoss())
        with pytest.raises(ValueError, match=r"Found BCEWithLogitsLoss: use Logistic\(\)."):
            tm.forecast(model, train, held_out, recipe, method=tm.methods.Kernel())
        with pytest.raises(TypeError, match=r"`weights` should map groups to numbers. Found list."):
            tm.forecast(
                model, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, weights=[1.0, 2.0], loss=tm.Square())
            )
        with pytest.raises(TypeError, match=r"`proportions` should map groups to shares. Found list."):
            tm.forecast(
                model,
                train,
                held_out,
                tm.Recipe(lr=0.1, steps=10, batch=None, proportions=[0.5, 0.5], loss=tm.Square()),
            )
        with pytest.raises(TypeError, match=r"`when` should choose steps, as log_spaced\(20\)"):
            tm.forecast(
                model,
                train,
                held_out,
                tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()),
                watch=tm.Watch(when=5),
            )
        with pytest.raises(ValueError, match=r"between 1 and 100,000,000. Found seeds = 0."):
            tm.forecast(
                lambda: model, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()), seeds=0
            )
        with pytest.raises(TypeError, match=r"CrossEntropy\(\) does not fit a model with one output"):
            tm.forecast(model, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.losses.CrossEntropy()))
        with pytest.raises(TypeError, match=r"`kernels` should be the result of `tm.tangent`. Found Linear."):
            tm.fairness.best_weights(model, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        with pytest.raises(TypeError, match=r"`criterion` should be one"):
            tm.fairness.best_weights(
                tm.tangent(model, train, held_out),
                tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()),
                criterion="gap",
            )
        with pytest.raises(TypeError, match=r"Found the class FinalGap: call it."):
            tm.fairness.best_weights(
                tm.tangent(model, train, held_out),
                tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()),
                criterion=tm.fairness.criteria.FinalGap,
            )

    def test_networks(self, two_labels):
        train, held_out = two_labels
        broken = nn.Linear(6, 1)
        with torch.no_grad():
            broken.weight[0, 0] = np.nan
        with pytest.raises(ValueError, match="finite"):
            tm.forecast(broken, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        needy = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 1))
        with pytest.raises(ValueError, match=r"Found that 1 \(BatchNorm1d\) needs a batch even there"):
            tm.tangent(needy, train, held_out)
        frozen = nn.Linear(6, 1).requires_grad_(False)
        with pytest.raises(ValueError, match=r"parameters to train. Found none"):
            tm.forecast(frozen, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))

        with pytest.raises(ValueError, match="on the meta device, with shapes but no values"):
            tm.forecast(
                nn.Linear(6, 1).to("meta"), train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square())
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(nn.Linear(6, 1), torch.zeros(2, 6))
        with pytest.raises(TypeError, match="Found a ScriptModule: pass the one that it was made from"):
            tm.forecast(traced, train, held_out, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))

        class Constant(nn.Module):
            def __init__(self):
                super().__init__()
                self.value = nn.Parameter(torch.ones(1))

            def forward(self, x):
                return self.value.expand(len(x))

        with pytest.raises(ValueError, match="one constant output for all"):
            tm.tangent(Constant(), train, held_out)

    def test_data(self, two_labels):
        train, _ = two_labels
        same = tm.GroupedData(train.x, np.ones(len(train)), train.codes)
        with pytest.raises(ValueError, match=r"`train` should have more than one label to learn. Found y = 1 only."):
            tm.forecast(nn.Linear(6, 1), same, same, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        other = tm.GroupedData(train.x, train.y, np.where(train.codes == 0, "x", "y"))
        with pytest.raises(ValueError, match="same groups"):
            tm.forecast(nn.Linear(6, 1), train, other, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        coded = tm.GroupedData(train.x, (train.y > 0).astype(int), np.asarray(train.groups)[train.codes])
        with pytest.raises(ValueError, match=r"`held_out` should have the labels of `train`, -1 and 1. Found y = 0."):
            tm.forecast(nn.Linear(6, 1), train, coded, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))

    def test_labels_are_numbers_of_outputs(self, two_labels, three_classes):
        for loss in (tm.losses.CrossEntropy(), tm.Square()):
            with pytest.raises(
                ValueError, match=r"Labels should lie among the model's 2 outputs, 0 to 1. Found y = -1"
            ):
                tm.forecast(nn.Linear(6, 2), *two_labels, tm.Recipe(lr=0.1, steps=10, batch=None, loss=loss))
        shifted = [tm.GroupedData(part.x, part.y + 1, part.codes) for part in three_classes]
        with pytest.raises(ValueError, match=r"Labels should lie among the model's 3 outputs, 0 to 2. Found y = 3"):
            tm.forecast(
                nn.Linear(6, 3), *shifted, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.losses.CrossEntropy())
            )

    def test_a_fifth_is_held_out_and_said(self):
        rng = np.random.default_rng(0)
        data = tm.GroupedData(rng.normal(size=(400, 6)), rng.choice([-1, 1], 400), np.arange(400) % 2)
        with pytest.warns(UserWarning, match="a fifth of every group"):
            ahead = tm.forecast(nn.Linear(6, 1), data, None, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()))
        assert ahead.origin.problem["held_out"]["points"] == 80
        with pytest.warns(UserWarning, match="a fifth of every group"):
            many = tm.forecast(
                lambda: nn.Linear(6, 1), data, None, tm.Recipe(lr=0.1, steps=10, batch=None, loss=tm.Square()), seeds=2
            )
        assert many.origin.problem["held_out"]["points"] == 80

    def test_a_sample_too_large_for_memory(self, two_labels, monkeypatch):
        memory = import_module("tiltmeter.modules.tangent.memory")
        monkeypatch.setattr(memory, "available_memory", lambda: 1000)
        with pytest.raises(ValueError, match=r"`sample` should be at most 0 to fit in memory"):
            tm.tangent(nn.Linear(6, 1), *two_labels)
