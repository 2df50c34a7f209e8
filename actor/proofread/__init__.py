"""Proofreading: whether a reader that had no part in writing finds the same rows in outputs as in inputs."""
