"""Checks of `lakewright doctor`: each returns findings, and none raises or changes anything."""
