"""Claims about bands: how often they miss the true curves of the population, and of the recipe."""

from __future__ import annotations

from tiltmeter_lab.catalogue import Runs
from tiltmeter_lab.claim import Claim
from tiltmeter_lab.shared.alarm_rates import COVERAGE, RECIPE, percent, share
from tiltmeter_lab.shared.random_deals import ANY


def coverage_claims(runs: Runs) -> list[Claim]:
    found = []
    sizes = sorted({int(name.rsplit(" ", 1)[1]) for name in runs if name.startswith(COVERAGE)})
    for few, bar, title in ((True, 0.12, "groups of 30"), (False, 0.08, "groups of 100 and more")):
        cells = {
            name.removeprefix(f"{COVERAGE} "): one
            for name, one in runs.items()
            if name.startswith(COVERAGE) and (int(name.rsplit(" ", 1)[1]) < 100) == few
        }
        if not cells:
            continue
        rates = {
            (n, c): share(one["missed"].isel(time=0).sel(curve=c))
            for n, one in cells.items()
            for c in ("loss", "error", "tpr")
        }
        worst = max(rates, key=lambda key: rates[key][0])
        told = "; ".join(
            f"{n}: "
            + ", ".join(f"{c} {percent(rates[n, c])}" for c in ("loss", "error", "tpr"))
            + f", jointly {percent(share(one['missed'].isel(time=0).sel(curve=ANY)))}"
            + f" (mean width {', '.join(f'{w:.3f}' for w in one['width'].isel(time=0).mean('draw').values[:3])})"
            for n, one in cells.items()
        )
        found.append(
            Claim(
                f"Bands of {title} cover the population at all evaluations together",
                rates[worst][0],
                f"share of draws that miss it somewhere, worst curve and size ({worst[1]}, {worst[0]})",
                bar, told + ".", rule="at most", error=rates[worst][1],  safe=bool(sizes),
            )
        )  # fmt: skip
    for seeds in (5, 10):
        cells = {
            n.removeprefix(f"{RECIPE} "): one
            for n, one in runs.items()
            if n.startswith(RECIPE) and n.endswith(f" {seeds}")
        }
        if not cells:
            continue
        rates = {
            (n, c): share(one["missed"].isel(time=0).sel(curve=c))
            for n, one in cells.items()
            for c in ("loss", "error", "tpr")
        }
        worst = max(rates, key=lambda key: rates[key][0])
        alarms = "; ".join(f"{n} {percent(share(one['named'].isel(time=0)))}" for n, one in cells.items())
        told = "; ".join(f"{n} {c} {percent(rate)}" for (n, c), rate in rates.items())
        found.append(
            Claim(
                f"Two-way bands of {seeds} seeds cover the recipe",
                1.0 - rates[worst][0],
                f"share of draws in which the mean over all seeds and points is covered, worst curve ({worst[1]})",
                0.92, f"Missed: {told}. A leader of random groups in any of five curves: {alarms}.",
                error=rates[worst][1],
            )
        )  # fmt: skip
    return found
