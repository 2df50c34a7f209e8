"""Background tasks, each idempotent, so that any number of deciders can run them."""
