"""Parts that several experiments share: tasks, scores, pictures, ways of training. No experiment lives here."""
