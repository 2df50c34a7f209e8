"""Redis, decider and actors on one machine, as one command."""
