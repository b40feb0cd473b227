"""Interventions of groups: how much the mean gradient of every group counts, from losses, shares and time."""
