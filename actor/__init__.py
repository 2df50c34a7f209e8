"""The actor: claims jobs, plans on the live snapshot, rewrites exact sets of files, and commits without changing data."""
