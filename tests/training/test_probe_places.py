"""Where a probe may run: other devices, other ranks."""

import json
import subprocess
import sys

import numpy as np
import pytest
from torch import nn

import tiltmeter as tm


def evaluated(model, data, **options):
    with tm.Probe(model, data, **options, budget=None) as probe:
        pass
    run = probe.trajectory()
    return {name: curve.isel(time=0) for name, curve in run.items()}, run


class TestPlaces:
    def test_shapes_are_checked_on_the_meta_device(self, flat):
        probe = tm.Probe(nn.Linear(6, 1, device="meta"), flat, strict=True, budget=None)
        with pytest.raises(ValueError, match="meta device has shapes but no values: it cannot be measured"):
            probe(0)
        with pytest.raises(ValueError, match="Labels should lie among"):
            tm.Probe(nn.Linear(6, 2, device="meta"), tm.GroupedData(flat.x, flat.y + 5, flat.codes), budget=None)

    def test_half_precision_models_are_fed_their_own_kind(self, flat):
        now, _ = evaluated(nn.Linear(6, 1).bfloat16(), flat)
        assert np.isfinite(now["loss"]).all()

    def test_groups_of_any_label_survive_the_disk(self, flat, tmp_path):
        data = tm.GroupedData(flat.x, flat.y, [("F", 1) if c else ("M", 2) for c in flat.codes])
        with tm.Probe(nn.Linear(6, 1), data, to=tmp_path / "run", budget=None) as probe:
            probe(0)
        assert tm.load(tmp_path / "run")["loss"].group.values.tolist() == [("F", 1), ("M", 2)]

    def test_only_rank_0_looks_and_writes(self, tmp_path):
        code = """
import sys, json, torch, numpy as np, tiltmeter as tm
from torch import nn, distributed as dist
rank, folder = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
rng = np.random.default_rng(0)
x = rng.normal(size=(200, 6)).astype("float32")
data = tm.GroupedData(x, (x[:, 0] > 0).astype(int), np.arange(200) % 2)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with tm.Probe(model, data, tm.Watch(when=tm.record.every(2)), to=f"{folder}/run", budget=None) as probe:
    for step in range(5):
        probe(step)
        optimizer.zero_grad()
        part = torch.as_tensor(x[rank::2][20 * step : 20 * step + 20])
        model(part).square().mean().backward()
        optimizer.step()
print(json.dumps({"rank": rank, "evaluations": len(probe.trajectory()), "weight": float(model.module[0].weight.sum())}))
dist.destroy_process_group()
"""
        ranks = [
            subprocess.Popen([sys.executable, "-c", code, str(r), str(tmp_path)], stdout=subprocess.PIPE, text=True)
            for r in range(2)
        ]
        found = [json.loads(rank.communicate(timeout=120)[0].splitlines()[-1]) for rank in ranks]
        assert found[0]["evaluations"] > 0
        assert found[1]["evaluations"] == 0
        assert found[0]["weight"] == found[1]["weight"]
        assert tm.load(tmp_path / "run")["loss"].time.values.tolist() == [0, 2, 4, 5]

    def test_without_torch_the_daily_names_say_what_to_install(self):
        code = (
            "import sys; sys.modules['torch'] = None\nimport tiltmeter as tm\n"
            "for name in ('Probe', 'train'):\n"
            "    try: getattr(tm, name)\n"
            "    except ImportError as error: print(error)\n"
            "tm.GroupedData, tm.report, tm.losses.CrossEntropy"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [
            f"`{name}` needs PyTorch: pip install 'tiltmeter[torch]'" for name in ("Probe", "train")
        ]
