"""Discover: groups that nobody labelled, found by their learning curves and judged on other points."""
