"""Tangent files: what marks the folder of a Tangent, and where the numbers of its points are."""

#: Format 2 added checksums of the two kernels.
FORMAT = 2
TANGENT, POINTS = "tangent.json", "points"
