"""Requests about whole tables, found by being here; `shared/layout/upkeep.py` describes upkeep of metadata."""
