"""Redis, decider and one actor on one machine, as one command."""
