"""Table formats whose logs the decider reads, one folder each."""
