"""Experiments: each repeats a published finding and reports, claim by claim, whether it holds and by which rule."""
