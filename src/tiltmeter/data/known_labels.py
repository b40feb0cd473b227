"""check_labels_known: points to look at have labels that the training data have too."""

from __future__ import annotations

import numpy as np

from tiltmeter.data.grouped import GroupedData


def check_labels_known(train: GroupedData, look: object) -> None:
    """Refuse points to look at with classes that no point trained on has: no model could have learned them."""
    if not isinstance(look, GroupedData) or not (train.label_rates and look.label_rates):
        return  # measurements, not classes
    unknown = np.setdiff1d(look.labels, train.labels)
    if len(unknown):
        raise ValueError(
            f"`look` should have labels that `train` has too. Found {', '.join(f'{label:g}' for label in unknown[:5])} "
            "in `look` only."
        )
