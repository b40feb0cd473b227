"""Interventions of batches: another batch in place of the one that was drawn."""
