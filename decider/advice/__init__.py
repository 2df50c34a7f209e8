"""Advice without a request: which settings would have served each table better."""
