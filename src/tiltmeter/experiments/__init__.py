"""Experiments: each regenerates a published finding and says whether it holds, by a rule written down beforehand."""
