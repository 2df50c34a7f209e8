"""Orient: what a commit means for the state of a table; pure."""
