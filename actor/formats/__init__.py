"""Table formats that an actor can rewrite, one folder each."""
