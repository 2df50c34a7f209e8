"""Duties: background work in ticks, each idempotent, so that any number of deciders may run them."""
