"""Interventions of models: what is delivered in place of the trained model."""
