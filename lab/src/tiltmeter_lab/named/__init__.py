"""The experiments of the catalogue, one file each. What several of them need is in `experiments/shared`."""
