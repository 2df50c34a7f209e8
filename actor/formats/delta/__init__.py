"""Delta tables: reads live files, writes file groups and commits the rewrite through Delta's own transaction."""
