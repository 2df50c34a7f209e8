"""Iceberg in the decider: catalogs and metadata are read with pyiceberg, which is imported when a table is opened."""
