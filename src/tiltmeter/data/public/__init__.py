"""Real data: loaders of public data sets in their publishers' layouts, and ways to make groups of them.

`digits` and `plain_digits` come with scikit-learn; the others need `tiltmeter data get NAME` or `TILTMETER_DATA`.
"""
