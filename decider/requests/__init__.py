"""Requests about whole tables: one module per action, found by being here."""
