"""The actor as a service: one Spark application with a few slots that drain the queue."""
