"""Charts as SVG files."""
