"""Tables that a file declares: read with the place of each mistake, and carried into the registry."""
