"""The exact rewrite, whatever the table's format: no format, no Spark and no Java is known here."""
