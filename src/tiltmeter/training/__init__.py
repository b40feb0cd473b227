"""Training with PyTorch: a probe for any loop, a short loop of our own, many seeds at once, adapters to trainers."""
