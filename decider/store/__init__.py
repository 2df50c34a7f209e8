"""Everything that the decider keeps in Redis."""
