"""Schemas: what goes over the wire, described field by field; pydantic lives here and nowhere else."""
