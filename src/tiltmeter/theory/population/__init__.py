"""Population: exact group rates of a linear score on a mixture, without test data.

Theory and simulation both use this package, so they report the same curves: `rates` computes error, positive rate, tpr,
fpr and ppv from overlaps; `fairness` compares groups.
"""
