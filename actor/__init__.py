"""The actor: claims jobs, plans on the live snapshot, rewrites exact sets of files, commits without changing data."""
