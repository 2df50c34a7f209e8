"""The REST API: one router per resource; the only package that knows HTTP status codes."""
