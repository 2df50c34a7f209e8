"""Registered tables, in Redis and saved outside of it."""
