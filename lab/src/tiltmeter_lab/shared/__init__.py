"""Parts that several experiments share: tasks, scores, pictures, training. There are no experiments here."""
