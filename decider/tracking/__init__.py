"""Tracks tables: reads new commits, updates the state, decides and stores the result in one atomic step."""
