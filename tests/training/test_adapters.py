"""Adapters, each with its real library: they look at the right steps, at the right model, and change nothing."""

import sys
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from tiltmeter import Probe
from tiltmeter.recipe import Watch
from tiltmeter.record import every
from tiltmeter.training.adapters import hugging_face_callback, ignite_handler, lightning_callback, skorch_callback

STEPS = 12


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def check(run, model, held_out, steps=STEPS):
    """All steps were seen, and the last reading is that of the final model."""
    assert run["loss"].time.values.tolist() == list(range(steps + 1))
    now = Probe(model, held_out, budget=None)
    now.evaluate(steps)
    for name in ("loss", "error", "tpr"):
        np.testing.assert_array_equal(run[name].sel(time=steps), now.trajectory()[name].sel(time=steps))
    assert float(run["loss"].isel(time=0).sum()) != float(run["loss"].isel(time=-1).sum())


def test_lightning(flat, tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = make_model()

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    def fit(watch, fail=False):
        lightning.seed_everything(1, verbose=False)
        model = Lit()
        probe = Probe(model, flat, watch=Watch(when=every(1)), to=tmp_path / str(fail), budget=None) if watch else None
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*flat.tensors()), 16, shuffle=True)
        trainer = lightning.Trainer(
            max_steps=STEPS,
            accumulate_grad_batches=2,
            callbacks=[lightning_callback(probe)] if watch else [],
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        if fail:
            model.training_step = lambda *_: (_ for _ in ()).throw(RuntimeError("out of memory"))
        trainer.fit(model, loader)
        return model, probe

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few workers, and how many batches to log
        plain, _ = fit(False)
        model, probe = fit(True)
        assert same(plain, model)
        check(probe.trajectory(), model, flat)
        with pytest.raises(RuntimeError, match="out of memory"):
            fit(True, fail=True)
    assert "RuntimeError: out of memory" in (tmp_path / "True" / "end.json").read_text()


def test_hugging_face(flat, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = make_model()

        def forward(self, x, labels=None):
            logits = self.net(x)
            return {"loss": None if labels is None else nn.functional.cross_entropy(logits, labels), "logits": logits}

    x, y = flat.tensors()
    points = [{"x": a, "labels": b} for a, b in zip(x, y, strict=True)]

    def fit(watch):
        transformers.set_seed(1)
        model = Net()
        probe = (
            Probe(model, flat, watch=Watch(when=every(1), read=lambda output: output["logits"]), budget=None)
            if watch
            else None
        )
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=STEPS,
            per_device_train_batch_size=16,
            gradient_accumulation_steps=2,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            learning_rate=0.01,
        )
        callbacks = [hugging_face_callback(probe)] if watch else []
        transformers.Trainer(model, arguments, train_dataset=points, callbacks=callbacks).train()
        return model, probe

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, _ = fit(False)
        model, probe = fit(True)
    assert same(plain, model)
    check(probe.trajectory(), model.net, flat)


def test_ignite(flat):
    pytest.importorskip("ignite", reason="pytorch-ignite is not installed")
    from ignite.engine import create_supervised_trainer

    def fit(watch):
        torch.manual_seed(1)
        model = make_model()
        probe = Probe(model, flat, watch=Watch(when=every(1)), budget=None) if watch else None
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*flat.tensors()), 50, shuffle=True)
        trainer = create_supervised_trainer(model, torch.optim.Adam(model.parameters()), nn.CrossEntropyLoss())
        if watch:
            ignite_handler(probe).attach(trainer)
        trainer.run(loader, max_epochs=3)
        return model, probe

    plain, _ = fit(False)
    model, probe = fit(True)
    assert same(plain, model)
    check(probe.trajectory(), model, flat)


def test_skorch(flat):
    skorch = pytest.importorskip("skorch", reason="skorch is not installed")
    x, y = (part.numpy() for part in flat.tensors())

    def fit(watch):
        torch.manual_seed(1)
        callbacks = (
            [("probe", skorch_callback(lambda module: Probe(module, flat, watch=Watch(when=every(1)), budget=None)))]
            if watch
            else []
        )
        net = skorch.NeuralNetClassifier(
            make_model,
            criterion=nn.CrossEntropyLoss,
            optimizer=torch.optim.Adam,
            max_epochs=3,
            batch_size=40,
            callbacks=callbacks,
            verbose=0,
        )
        return net.fit(x, y)  # a fifth is set aside for validation: 4 batches of 40 per epoch

    plain, net = fit(False), fit(True)
    assert same(plain.module_, net.module_)
    probe = dict(net.callbacks_)["probe"].probe_
    check(probe.trajectory(), net.module_, flat)


@pytest.mark.parametrize(
    ("adapter", "module", "sentence"),
    [
        (
            lightning_callback,
            "lightning.pytorch",
            "`lightning_callback` needs Lightning: pip install 'tiltmeter[lightning]'.",
        ),
        (
            hugging_face_callback,
            "transformers",
            "`hugging_face_callback` needs transformers: pip install 'tiltmeter[hf]'.",
        ),
        (ignite_handler, "ignite.engine", "`ignite_handler` needs pytorch-ignite: pip install 'tiltmeter[ignite]'."),
        (skorch_callback, "skorch.callbacks", "`skorch_callback` needs skorch: pip install 'tiltmeter[skorch]'."),
    ],
)
def test_a_missing_library_is_named(monkeypatch, adapter, module, sentence):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as error:
        adapter(None)
    assert str(error.value) == sentence
