"""Store: everything the decider keeps in Redis, behind names of the domain."""
