"""Event formats, one pure module per source."""
