"""Decisions: whether a partition is rewritten, why, and what the rewrite is predicted to gain; pure."""
