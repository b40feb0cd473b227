"""The scorecard: interventions beside the plain training, each judged by its whole trajectory."""
