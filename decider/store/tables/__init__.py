"""State of each table."""
