"""Pictures of studies and measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiltmeter.lazy_names import offer

if TYPE_CHECKING:
    from tiltmeter_lab.plot.labelled_lines import angles as angles
    from tiltmeter_lab.plot.labelled_lines import as_groups as as_groups
    from tiltmeter_lab.plot.labelled_lines import labelled_lines as labelled_lines
    from tiltmeter_lab.plot.labelled_lines import reliance as reliance
    from tiltmeter_lab.plot.loss_slices import loss_slices as loss_slices
    from tiltmeter_lab.plot.variance_shares import cell_means as cell_means
    from tiltmeter_lab.plot.variance_shares import variance_shares as variance_shares


__all__ = offer(__name__)  # noqa: PLE0605
