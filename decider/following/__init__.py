"""Following tables: their logs are read behind the cursor, folded, decided on, and ingested in one atomic step."""
