"""Copying for formats whose files are Parquet: how files are joined as bytes, and when they are not."""
