"""`tiltmeter demo`: the main use of tiltmeter, on built-in data and problems."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from tiltmeter import plot
from tiltmeter.cli.demo_page import advice_part, forecast_part, write_demo_page
from tiltmeter.cli.terminal import Json, print_json, print_rows
from tiltmeter.data.public.digits import digits
from tiltmeter.data.synthetic.shortcut_digits import shortcut_digits
from tiltmeter.interventions import JTT, Balanced, GroupDRO, VREx
from tiltmeter.leaders.agreement import agreement
from tiltmeter.leaders.drivers import drivers
from tiltmeter.leaders.leaders import leaders
from tiltmeter.leaders.stopping import Stopping, stopping
from tiltmeter.losses import Logistic, Square
from tiltmeter.names import NOBODY
from tiltmeter.problem import cases
from tiltmeter.problem.sgd import SGD
from tiltmeter.problem.teacher_mixture import teacher_mixture
from tiltmeter.recipe import Recipe, Watch
from tiltmeter.record import log_spaced
from tiltmeter.report.html import paragraph, section
from tiltmeter.report.page import Section, Table, page_place, write_page
from tiltmeter.theory.predict import predict
from tiltmeter.theory.stability import timescales
from tiltmeter.version import __version__

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


STORIES = {
    "One crossing: larger variance first, more data last": cases.centred_crossing,
    "Three phases: shift, then variance, then representation": cases.three_phases,
    "Negative control: equal groups, no bias at any time": cases.no_bias,
}


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
    sections: list[Section] = []
    rows = []
    for heading, case in STORIES.items():
        print(f"{heading} ...", file=sys.stderr)
        problem, sgd, times = case()
        theory = predict(problem, sgd, times)
        led = leaders(theory, "loss")
        name = case.__name__.replace("_", " ")
        for phase in led.phases:
            span = f"{phase.start:.3g} to {phase.stop:.4g}"
            rows.append((name, span, str(phase.leader), f"{phase.size:.4f}", phase.reason or ""))
        if not led.phases:
            rows.append((name, f"{times[0]:.3g} to {times[-1]:.4g}", "none", "0", "groups alike"))
        charts: list[Any] = [plot.curves(theory, leaders=led, timescales=timescales(problem, sgd))]
        text = [" ".join((case.__doc__ or "").split("\n\n")[0].split()), led.headline.line]
        tables = []
        if led.phases:
            charts += [plot.drivers(drivers(problem, sgd, times)), plot.order_parameters(theory)]
            tables.append(_stopping_table(stopping(theory)))
        sections.append(Section(heading, text, tables, charts))
    print("Phase diagram ...", file=sys.stderr)
    sections.append(_phase_diagram())
    header = ("problem", "t", "leader", "mean gap", "because")
    sections.insert(0, Section("In short", tables=[Table(header, rows)]))
    theory_page = page.with_name(f"{page.stem}-theory.html")
    write_page(theory_page, "When and why the lead changes: exact theory", sections, f"tiltmeter {__version__}")
    written = write_demo_page(page, title, [first, cured], theory_page)
    if json:
        stories = [dict(zip(header, row, strict=True)) for row in rows]
        pages = {"page": str(written.resolve()), "theory": str(theory_page.resolve())}
        print_json({"sentences": told, "stories": stories, **pages})
        return
    for line in told:
        print(line)
    print_rows(header, rows, edge=False)
    print(f"Theory: {theory_page.resolve()}")
    print(f"Pictures: {written.resolve()}")


def _stopping_table(advice: Stopping) -> Table:
    rows = [
        (rule.rule, f"{rule.time:.3g}", f"{rule.gap:.4f}", f"{rule.mean:.4f}", f"{rule.worst:.4f}")
        for rule in advice.rules
    ]
    return Table(("stop for the", "at t", "gap", "mean loss", "worst group"), rows)


def _phase_diagram() -> Section:
    ratio, share = np.geomspace(0.2, 5.0, 100), np.linspace(0.05, 0.95, 100)
    name = "variance of - / variance of +"
    variance = xr.DataArray(0.5 * ratio, dims=name, coords={name: ratio})
    rho = xr.DataArray(share, dims="share of +", coords={"share of +": share})
    problem = teacher_mixture(rho=rho, variance=(0.5, variance), overlap=0.5)
    grid = predict(problem, SGD(lr=0.1), np.geomspace(0.01, 500.0, 120), curves=("loss",))
    text = ["Every point is a separate problem: which group leads at the end, and whether the lead ever changed."]
    return Section("Where the lead changes", text, charts=[plot.phase_diagram(grid)])
