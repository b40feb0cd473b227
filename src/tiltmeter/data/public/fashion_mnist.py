"""fashion_mnist: articles of clothing (Xiao, Rasul, Vollgraf, 2017), in the layout of MNIST."""

from __future__ import annotations

from tiltmeter.data.public.idx_format import idx_images
from tiltmeter.data.public.images import Images, Part

CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag"),
    "Ankle boot",
)


def fashion_mnist(part: Part = "train") -> Images:
    """60,000 training or 10,000 test images, 28 x 28 bytes each."""
    return idx_images("fashion-mnist", part, CLASSES)
