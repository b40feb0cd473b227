"""Changes: what one training does that another does not, to the gap, to errors and to who is selected.

`change.py` says it, `compare.py` computes it from runs that were judged on the same points.
"""
