"""`tiltmeter demo`: the main use of tiltmeter, on built-in data and problems."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tiltmeter.cli.demo_page import advice_part, forecast_part, write_demo_page
from tiltmeter.cli.terminal import Json, print_json, print_rows
from tiltmeter.data.public.digits import digits
from tiltmeter.data.shortcut_digits import shortcut_digits
from tiltmeter.interventions import JTT, Balanced, GroupDRO, VREx
from tiltmeter.leaders.agreement import agreement
from tiltmeter.leaders.leaders import leaders
from tiltmeter.losses import Logistic, Square
from tiltmeter.names import NOBODY
from tiltmeter.plugins import PARTS, plugin
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import log_spaced
from tiltmeter.report.html import paragraph, section
from tiltmeter.report.page import page_place

HEADING = "What would change it: a shortcut, and four interventions tried"
STEPS, WIDTH = 300, 256
LAWS = {
    "balanced weights": Balanced(),
    "group DRO": GroupDRO(0.01),
    "V-REx": VREx(),
    "JTT": JTT(times=20, scout=STEPS // 10),
}
INTRODUCTION = (
    "The same digits with four extra pixels that agree with the label in 95 % of the training points and say nothing "
    "in the held-out points. Two groups: points that agree with this shortcut and points that contradict it. The "
    "network is trained plainly and with four interventions, all with the same batches."
)
WITHOUT_TORCH = "Cures of a network need PyTorch: pip install 'tiltmeter[torch]'."


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


def cure_section() -> tuple[str, list[str]]:
    """The section of the page, and a summary in one line."""
    try:
        import torch
    except ModuleNotFoundError:
        return section("advice", HEADING, paragraph(WITHOUT_TORCH)), []
    from tiltmeter.advice.advise import advise
    from tiltmeter.forecast.methods import Rehearsal
    from tiltmeter.modules.networks import mlp

    data, held_out = shortcut_digits()
    recipe = Recipe(lr=0.05, steps=STEPS, batch=64, loss=Logistic())
    watch = Watch(when=log_spaced(8))

    def network() -> torch.nn.Module:
        torch.manual_seed(0)
        return mlp(data.x.shape[1], (WIDTH,))

    with one_torch_thread():
        advice = advise(network(), data, held_out, recipe, LAWS, watch=watch, method=Rehearsal(), progress=False)
    return advice_part(HEADING, INTRODUCTION, advice), [f"advice:   {advice.headline}"]


#: The title where forecast and training do not name the same group.
TITLE = "Which group a model favours: forecast, then trained"
DIGITS_HEADING = "Real images, a real network: forecast, then trained"
LR, DIGITS_STEPS, BATCH, DIGITS_WIDTH, SHARE, CONTRAST = 0.006, 2000, 16, 256, 0.9, (0.2, 2.5)
DIGITS_INTRODUCTION = (
    "scikit-learn's digits, small (0 to 4) against large (5 to 9), in two groups: many upright and faint, few turned "
    f"and bright. A network of {DIGITS_WIDTH} hidden units is rehearsed three times, with other batches. The training "
    "that follows starts from the same weights."
)
DIGITS_WITHOUT_TORCH = "The forecast and the training of a network need PyTorch: pip install 'tiltmeter[torch]'."


def digits_section() -> tuple[str, list[str], str]:
    """The section of the page, a summary in a few lines, and the title of the page."""
    try:
        import torch
    except ModuleNotFoundError:
        return section("forecast", DIGITS_HEADING, paragraph(DIGITS_WITHOUT_TORCH)), [DIGITS_WITHOUT_TORCH], TITLE
    from tiltmeter.forecast.forecast import forecast
    from tiltmeter.forecast.methods import Rehearsal
    from tiltmeter.modules.networks import mlp
    from tiltmeter.recipe.sampling import Draws
    from tiltmeter.training.loop import train

    data, held_out = digits(share=SHARE, contrast=CONTRAST, labels="large")
    recipe = Recipe(lr=LR, steps=DIGITS_STEPS, batch=BATCH, sampling=Draws(), loss=Square())
    with one_torch_thread(), warnings.catch_warnings():
        torch.manual_seed(0)
        model = mlp(64, (DIGITS_WIDTH,), 1)
        warnings.simplefilter("ignore", UserWarning)  # the text below says how far to trust it
        ahead = forecast(model, data, held_out, recipe, method=Rehearsal(3), progress=False)
        run = train(model, data, held_out, recipe)
    promise: Any = ahead.origin.settings["promise"]
    led, foretold = leaders(run, "loss"), leaders(ahead, "loss")
    lines = [f"forecast: {foretold.headline.line}", f"trained:  {led.headline.line}", f"{promise['sentence']}."]
    last = {one.phases[-1].leader if one.phases else NOBODY for one in (foretold, led)}
    title = TITLE if len(last) > 1 or NOBODY in last else f"Group {last.pop()} ends with the lower loss, as forecast"
    distance = agreement(ahead, run, "loss")["loss"].largest
    return forecast_part(DIGITS_HEADING, DIGITS_INTRODUCTION, ahead, run, (foretold, led), distance), lines, title


def demo(page: Path = Path("tiltmeter-demo.html"), *, json: Json = False) -> None:
    """Show what tiltmeter does, on built-in examples; writes two HTML pages.

    Parameters
    ----------
    page
        Where to write the first page; the one about theory stands beside it.
    """
    page_place(page)
    print("Digits: forecast, then trained ...", file=sys.stderr)
    first, told, title = digits_section()
    print("Digits with a shortcut: four interventions tried ...", file=sys.stderr)
    cured, told_of_cures = cure_section()
    told += told_of_cures
    write_theory = plugin(PARTS, "demo-theory")
    theory = page.with_name(f"{page.stem}-theory.html") if write_theory is not None else None
    header, *rows = [()] if write_theory is None else write_theory(theory)
    written = write_demo_page(page, title, [first, cured], theory)
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
