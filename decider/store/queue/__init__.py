"""Reads and changes of the queue."""
