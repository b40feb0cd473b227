"""Plot: one function per picture, each an Altair chart to show in a notebook or `save` to a file.

>>> import tempfile
>>> import tiltmeter as tm
>>> problem, sgd, times = tm.cases.three_phases()
>>> theory = tm.predict(problem, sgd, times, curves=("loss", "M", "R", "Q"))
>>> chart = curves(theory, phases=tm.phases(theory), timescales=tm.timescales(problem, sgd))
>>> with tempfile.TemporaryDirectory() as folder:
...     save(chart, folder + "/three_phases.svg").suffix  # or .png, .pdf, .html, .json
'.svg'

`curves` puts theory and measurement on one axis, `order_parameters` shows M, R and Q, `drivers` what makes the gap,
`phase_diagram` who wins over a grid of two parameters; `equilibrium_sweep`, `frontier` and `double_descent` show
trained students. A group has the same colour in all of them, and a dash, shape or shade besides, so that prints in grey
remain readable. Time is logarithmic; its zero is left out.
"""

from tiltmeter.plot.curves import curves
from tiltmeter.plot.double_descent import double_descent
from tiltmeter.plot.drivers import drivers
from tiltmeter.plot.equilibrium_sweep import equilibrium_sweep
from tiltmeter.plot.frontier import frontier
from tiltmeter.plot.order_parameters import order_parameters
from tiltmeter.plot.phase_diagram import phase_diagram
from tiltmeter.plot.save import save

__all__ = [
    "curves",
    "double_descent",
    "drivers",
    "equilibrium_sweep",
    "frontier",
    "order_parameters",
    "phase_diagram",
    "save",
]
