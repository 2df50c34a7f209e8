"""Observe: from hints and logs to facts. Events say where to look; only a table's own log says what is there."""
