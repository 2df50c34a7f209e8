"""Events: detects the format of a payload and resolves it to tables that need a refresh."""
