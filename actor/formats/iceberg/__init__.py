"""Iceberg in the actor: exact rewrites through Iceberg's own Java classes, reached by py4j."""
