"""The `lakewright` command: a client of the REST API, and the door to the services; it needs no extra."""
