"""Observables: what a linear score does to each group of a mixture, exactly and without test data.

Shared by theory and simulation, so that both report the same curves: `rates` turns overlaps into error, positive
rate, tpr, fpr and ppv; `fairness` compares groups.
"""
