"""What several interventions need: numbers by group, capped shares, the last layer, how well a set was guessed."""
