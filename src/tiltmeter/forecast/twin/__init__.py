"""Twin: a narrow network cut from the user's own, trained in its place; features and any optimiser included."""
