"""Every experiment of the catalogue: what it offers, that its quick run ends, and that its safe claims hold."""

import dataclasses
import json

import pytest

from tiltmeter_lab.catalogue import EXPERIMENTS, entry_of, find
from tiltmeter_lab.reproduce import reproduce
from tiltmeter_lab.verdicts import small_png

#: Seconds each: these run in the default suite.
FAST = ("order-parameters", "spurious-correlation", "phase-diagram", "learning-rates", "upweight-or-upsample")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_offers_what_is_asked_of_it(name):
    module = find(name)
    assert module.__doc__
    assert module.TITLE[-1] != "."
    assert module.PAPER
    assert isinstance(module.NEEDS, tuple)
    for setting in (module.QUICK, module.FULL):
        assert dataclasses.is_dataclass(setting)
        assert type(setting).__dataclass_params__.frozen
        assert setting.seeds >= 1
        json.dumps(dataclasses.asdict(setting))
    assert module.QUICK != module.FULL


@pytest.mark.filterwarnings("default")  # experiments go where forecasts and measures warn
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in EXPERIMENTS]
)
def test_safe_claims_hold_at_quick_scale(name, tmp_path):
    outcome = reproduce(name, to=tmp_path)
    if outcome.state == "not run":
        pytest.skip(outcome.reason)
    assert outcome.claims
    assert outcome.runs
    for claim in outcome.claims:
        print(claim)  # shown by pytest -rP: those that are not safe are reported, not asserted
    failing = [str(claim) for claim in outcome.claims if claim.safe and not claim.holds]
    assert not failing, failing
    for _, file in outcome.pictures:
        spec = json.loads((tmp_path / name / "quick" / "pictures" / f"{file}.json").read_text())
        assert small_png(spec)


@pytest.mark.slow
def test_several_at_a_time(tmp_path, capfd):
    from tiltmeter.cli import main

    assert main(["reproduce", "phase-diagram", "spurious-correlation", "--jobs", "2", "--to", str(tmp_path)]) == 0
    said = capfd.readouterr()
    assert said.out.startswith("2 experiments: 12 claims hold, 0 do not")
    assert "[2/2] spurious-correlation: theory" in said.err


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_list_says_what_the_modules_say(name):
    entry, module = entry_of(name), find(name)
    assert (entry.title, entry.paper, entry.needs) == (module.TITLE, module.PAPER, tuple(module.NEEDS))
