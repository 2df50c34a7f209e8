"""Locations, paths and stores, and how each is written."""
