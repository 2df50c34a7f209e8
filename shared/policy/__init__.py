"""A table's policy, and the properties that set it."""
