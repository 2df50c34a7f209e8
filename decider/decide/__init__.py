"""Decide: what to do about a cell, and how to remember why; pure."""
