"""Interventions of gradients: how much every group counts, from the inner products of the groups' gradients."""
