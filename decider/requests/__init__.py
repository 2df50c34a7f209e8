"""Requests: what people ask for, about one table: a rewrite now, a plan, a replay under other policies."""
