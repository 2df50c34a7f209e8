"""Status of a table's index on several columns."""
