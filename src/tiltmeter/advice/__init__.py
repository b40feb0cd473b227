"""Advice: interventions ranked for one network and its data, before anything is trained at full size."""
