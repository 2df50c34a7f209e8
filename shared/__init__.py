"""Rules and values that decider and actor share: pure, standard library only, no I/O, no clock, no randomness."""
