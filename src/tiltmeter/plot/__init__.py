"""Plot: one function per picture; each returns an Altair chart to show in a notebook or to `save` to a file.

>>> import tempfile
>>> import tiltmeter as tm
>>> problem, sgd, times = tm.theory.cases.three_phases()
>>> theory = tm.predict(problem, sgd, times, curves=("loss", "M", "R", "Q"))
>>> chart = tm.plot.curves(theory, leaders=tm.leaders(theory), timescales=tm.timescales(problem, sgd))
>>> with tempfile.TemporaryDirectory() as folder:
...     tm.plot.save(chart, folder + "/three_phases.svg").suffix  # or .png, .pdf, .html, .json
'.svg'

`curves` draws theory and measurement on one axis, `order_parameters` draws M, R and Q, `drivers` the contributions to
the gap, `phase_diagram` the leader over a grid of two parameters, `double_descent` the effect of the size of the
training set, `memorisation` what such a set moved, `feature_sweep` the effect of the number of features, `class_curves`
one panel per class; `equilibrium_sweep` and `frontier` draw trained
students; `loss_plane`, `who_paid`, `areas` and `pulls` draw interventions beside the plain training,
`variance_shares` and `cell_means` draw studies, `loss_slices` the loss along a line through the weights. A group has
the same colour in all of them, and also a dash pattern, shape or shade, so that grey-scale prints stay readable. The
time axis is logarithmic and leaves out time zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter.plot import theme as theme
    from tiltmeter.plot.class_curves import class_curves as class_curves
    from tiltmeter.plot.curves import curves as curves
    from tiltmeter.plot.loss_plane import areas as areas
    from tiltmeter.plot.loss_plane import loss_plane as loss_plane
    from tiltmeter.plot.loss_plane import pulls as pulls
    from tiltmeter.plot.loss_plane import who_paid as who_paid
    from tiltmeter.plot.order_parameters import order_parameters as order_parameters
    from tiltmeter.plot.save import save as save
    from tiltmeter.plot.theme import run_channels as run_channels


__all__ = offer(__name__)  # noqa: PLE0605
