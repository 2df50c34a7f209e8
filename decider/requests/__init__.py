"""Requests about whole tables, found by being here; those of upkeep follow from `shared/layout/upkeep.py`."""
