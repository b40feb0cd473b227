"""An intervention in other people's trainers, each with its real library: the weights are those of a plain loop."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import tiltmeter as tm

LAW = tm.interventions.GroupDRO(0.3, every=2)
BATCH = 20


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def tensors(data):
    return *data.tensors(), torch.as_tensor(data.codes)


def expected(data):
    """One epoch of a plain loop, in the order of the data."""
    model = make_model()
    steer = tm.Steering(LAW, data)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for x, y, group in loader(data):
        optimizer.zero_grad()
        steer(cross_entropy(model(x), y, reduction="none"), group).backward()
        optimizer.step()
    return model, steer


def loader(data):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*tensors(data)), BATCH)


def check(data, model, steer):
    plain, law = expected(data)
    for a, b in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(law.buffers(), steer.buffers(), strict=True):
        assert torch.equal(a, b)
    assert int(steer.steps) == 10
    assert not torch.allclose(steer.pull, torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_lightning(flat, tmp_path):
    lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.steer = make_model(), tm.Steering(LAW, flat)

        def training_step(self, batch, _):
            x, y, group = batch
            return self.steer(cross_entropy(self.net(x), y, reduction="none"), group)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.5)

    model = Lit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(model, loader(flat))
        trainer.save_checkpoint(tmp_path / "kept.ckpt")
    check(flat, model.net, model.steer)
    kept = torch.load(tmp_path / "kept.ckpt", weights_only=False)["state_dict"]
    assert torch.equal(kept["steer.pull"], model.steer.pull)


def test_hugging_face(flat, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.steer = make_model(), tm.Steering(LAW, flat)

        def forward(self, x, **_):
            return {"logits": self.net(x)}

    class Steered(transformers.Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **_):
            output = model(inputs["x"])
            losses = cross_entropy(output["logits"], inputs["labels"], reduction="none")
            loss = model.steer(losses, inputs["group"])
            return (loss, output) if return_outputs else loss

        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    model = Net()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=1,
        per_device_train_batch_size=BATCH,
        remove_unused_columns=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        max_grad_norm=0.0,
    )
    points = [dict(zip(("x", "labels", "group"), one, strict=True)) for one in zip(*tensors(flat), strict=True)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Steered(model, arguments, train_dataset=points, optimizers=(optimizer, constant)).train()
    check(flat, model.net, model.steer)


def test_ignite(flat):
    engine = pytest.importorskip("ignite.engine", reason="pytorch-ignite is not installed")
    model = make_model()
    steer = tm.Steering(LAW, flat)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    def update(_, batch):
        x, y, group = batch
        optimizer.zero_grad()
        steer(cross_entropy(model(x), y, reduction="none"), group).backward()
        optimizer.step()

    engine.Engine(update).run(loader(flat), max_epochs=1)
    check(flat, model, steer)


def test_skorch(flat):
    skorch = pytest.importorskip("skorch", reason="skorch is not installed")
    steer = tm.Steering(LAW, flat)

    class Steered(skorch.NeuralNet):
        def get_loss(self, y_pred, y_true, X=None, training=False):
            losses = super().get_loss(y_pred, y_true[:, 0], X=X, training=training)
            return steer(losses, y_true[:, 1], learn=training)

    x, y, group = tensors(flat)
    net = Steered(
        make_model,
        criterion=nn.CrossEntropyLoss,
        criterion__reduction="none",
        optimizer=torch.optim.SGD,
        lr=0.5,
        max_epochs=1,
        batch_size=BATCH,
        train_split=None,
        verbose=0,
    )
    net.fit(x, torch.stack([y, group], dim=1))
    check(flat, net.module_, steer)
