"""Payload and options of jobs, which travel from the decider to the actor."""
