"""Delta tables: reading a cell, rewriting an exact set of files, and the Spark application that does it."""
