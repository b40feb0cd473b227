"""Several classes: the exact dynamics of C linear scores, under the squared error and under cross-entropy."""
