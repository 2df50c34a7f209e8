"""The Delta log reader: commits, checkpoints, checksums, and the history of our own rewrites."""
