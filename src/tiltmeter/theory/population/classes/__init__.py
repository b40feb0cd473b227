"""Several classes: averages over the inputs of a group, class by class, and the decisions of C linear scores."""
