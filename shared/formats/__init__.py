"""Rules of one table format that the decider and the actor share; each module belongs to that format alone."""
