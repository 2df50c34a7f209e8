"""What the decider and the actor must agree on: pure, standard library only, no I/O, no clock, no randomness."""
