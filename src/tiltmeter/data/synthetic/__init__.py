"""Synthetic data: generators whose structure is known, one file each."""
