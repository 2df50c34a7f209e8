"""The demonstration: a table under small commits, kept in shape while it is written, with the proof that no row is lost."""
