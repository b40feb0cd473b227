"""mnist: handwritten digits (LeCun, Cortes, Burges)."""

from __future__ import annotations

from tiltmeter.data.public.idx_format import idx_images
from tiltmeter.data.public.images import Images, Part

CLASSES = tuple("0123456789")


def mnist(part: Part = "train") -> Images:
    """60,000 training or 10,000 test images, 28 x 28 bytes each.

    >>> import os
    >>> if os.path.isdir(os.path.join(os.environ.get("TILTMETER_DATA", ""), "mnist")):
    ...     assert mnist("test").x.shape == (10000, 28, 28)
    """
    return idx_images("mnist", part, CLASSES)
