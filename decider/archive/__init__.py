"""The decision ledger and the rewrites as Delta tables, for SQL and for long-term storage."""
