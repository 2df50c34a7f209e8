"""The demonstration: a table under small commits, kept in shape while it is written, and no row lost."""
