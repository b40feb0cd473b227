"""Real data: loaders of public data sets in the file layouts of their publishers, and functions that make groups of
them.

`digits` and `plain_digits` come with scikit-learn; the others need `tiltmeter data get NAME` or `TILTMETER_DATA`.
"""
