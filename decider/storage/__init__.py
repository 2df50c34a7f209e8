"""Object storage: canonical locations, clients and metered reads."""
