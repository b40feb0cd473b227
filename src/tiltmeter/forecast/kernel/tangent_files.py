"""Tangent files: what marks the folder of a Tangent, and where the numbers of its points are."""

FORMAT = 1
TANGENT, POINTS = "tangent.json", "points"
