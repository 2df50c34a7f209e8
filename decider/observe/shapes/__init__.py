"""Shapes: one pure module per event source, each turning what that source sends into hints and counted refusals."""
