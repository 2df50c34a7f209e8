"""On-demand work on one table: rewrites, dry runs and property-triggered runs."""
