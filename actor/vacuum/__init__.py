"""The parts of a vacuum that all formats share: when one is wanted, and how files are deleted beside writers."""
