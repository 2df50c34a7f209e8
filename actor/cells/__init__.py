"""Runs on tables in cells, whatever their format: what is planned, where rows go, and what a run may leave behind."""
