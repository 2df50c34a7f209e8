"""Store: what an actor keeps in Redis, which is only its place in the queue."""
