"""Rules of Iceberg that decider and actor share, so that both name positions, partitions and refusals alike."""
