"""What formats whose files are Parquet share: how files are joined as bytes, and when they are not."""
