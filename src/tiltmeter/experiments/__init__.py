"""Experiments: each regenerates a published finding and says, claim by claim, whether it holds and by which rule."""
