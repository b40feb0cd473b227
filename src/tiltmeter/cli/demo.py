"""`tiltmeter demo`: the main use of tiltmeter, on built-in data and problems."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tiltmeter.cli.demo_page import advice_part, forecast_part, write_demo_page
from tiltmeter.cli.terminal import Json, print_json, print_rows
from tiltmeter.data.loans import loans
from tiltmeter.interventions import JTT, Balanced, GroupDRO, GroupThreshold
from tiltmeter.leaders.agreement import agreement
from tiltmeter.leaders.leaders import leaders
from tiltmeter.losses import Logistic
from tiltmeter.plugins import PARTS, plugin
from tiltmeter.preview.preview import preview
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import log_spaced
from tiltmeter.report.html import paragraph, section
from tiltmeter.report.page import page_place

HEADING = "What would change it: four interventions tried"
STEPS, BATCH, LR, WIDTH = 600, 32, 0.05, 16
ARMS = {
    "thresholds by group": GroupThreshold("tpr"),
    "balanced weights": Balanced(),
    "group DRO": GroupDRO(0.01),
    "JTT": JTT(times=20, scout=STEPS // 10),
}
INTRODUCTION = (
    "The network is trained plainly and with each intervention, all with the same batches. A change counts only if the "
    "error of no group clearly rises by more than a point, and if fresh trainings confirm it on people who did not "
    "choose it."
)
WITHOUT_TORCH = "Trainings of a network need PyTorch: pip install 'tiltmeter[torch]'."


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Small matrices are slower on several threads, and sums would depend on their number."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def advice_section() -> tuple[str, list[str]]:
    """The section of the page, and a summary in one line."""
    try:
        import torch
    except ModuleNotFoundError:
        return section("advice", HEADING, paragraph(WITHOUT_TORCH)), []
    from tiltmeter.advice.advise import advise
    from tiltmeter.forecast.methods import Rehearsal
    from tiltmeter.modules.networks import mlp

    data, held_out = loans()
    with one_torch_thread():
        torch.manual_seed(0)
        model = mlp(data.x.shape[1], (WIDTH,), 1)
        recipe, watch = replace(_recipe(), order=0), Watch(when=log_spaced(8))
        advice = advise(model, data, held_out, recipe, ARMS, watch=watch, method=Rehearsal(), progress=False)
    return advice_part(HEADING, INTRODUCTION, advice), [f"advice:   {advice.headline}"]


def _recipe() -> Recipe:
    return Recipe(lr=LR, steps=STEPS, batch=BATCH, loss=Logistic())


#: The title where forecast and training do not name the same group.
TITLE = "Whom a model will fail: forecast, then trained"
LOANS_HEADING = "Loans: forecast, then trained"
LOANS_INTRODUCTION = (
    "Made-up applications for loans: women earn less than men and repay as often. A network of "
    f"{WIDTH} hidden units is rehearsed five times, with other batches. The training that follows starts from the same "
    "weights."
)


def loans_section() -> tuple[str, list[str], str]:
    """The section of the page, a summary in a few lines, and the title of the page."""
    data, held_out = loans()
    view = preview(data, held_out)
    lines = [f"preview:  {view.claim}"]
    try:
        import torch
    except ModuleNotFoundError:
        return section("forecast", LOANS_HEADING, paragraph(view.claim), paragraph(WITHOUT_TORCH)), lines, TITLE
    from tiltmeter.forecast.forecast import forecast
    from tiltmeter.forecast.methods import Rehearsal
    from tiltmeter.modules.networks import mlp
    from tiltmeter.training.loop import train

    with one_torch_thread(), warnings.catch_warnings():
        torch.manual_seed(0)
        model = mlp(data.x.shape[1], (WIDTH,), 1)
        warnings.simplefilter("ignore", UserWarning)  # the text below says how far to trust it
        ahead = forecast(model, data, held_out, _recipe(), method=Rehearsal(5), progress=False)
        foretold = leaders(ahead)
        led = leaders(train(model, data, held_out, _recipe(), forecast=foretold.gap_forecast))
    assert led.run is not None
    lines += [f"forecast: {foretold.headline.line}", f"trained:  {led.headline.answer} {led.headline.line}"]
    same = foretold.headline.clear and foretold.headline.leader == led.headline.leader
    title = led.headline.claim if same else TITLE
    distance = agreement(ahead, led.run, led.curve)[led.curve].largest
    return forecast_part(LOANS_HEADING, LOANS_INTRODUCTION, ahead, led.run, (foretold, led), distance), lines, title


def demo(page: Path = Path("tiltmeter-demo.html"), *, json: Json = False) -> None:
    """Show what tiltmeter does, on built-in examples; writes two HTML pages.

    Parameters
    ----------
    page
        Where to write the first page; the one about theory stands beside it.
    """
    page_place(page)
    print("Loans: forecast, then trained ...", file=sys.stderr)
    first, told, title = loans_section()
    print("Loans: four interventions tried ...", file=sys.stderr)
    changed, told_of_changes = advice_section()
    told += told_of_changes
    write_theory = plugin(PARTS, "demo-theory")
    theory = page.with_name(f"{page.stem}-theory.html") if write_theory is not None else None
    header, *rows = [()] if write_theory is None else write_theory(theory)
    written = write_demo_page(page, title, [first, changed], theory)
    if json:
        stories = [dict(zip(header, row, strict=True)) for row in rows]
        pages = {"page": str(written.resolve()), "theory": None if theory is None else str(theory.resolve())}
        print_json({"sentences": told, "stories": stories, **pages})
        return
    for line in told:
        print(line)
    if theory is not None:
        print_rows(header, rows, edge=False)
        print(f"Theory: {theory.resolve()}")
    print(f"Pictures: {written.resolve()}")
