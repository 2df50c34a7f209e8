"""Replays the commits of a table under other policies and rules."""
