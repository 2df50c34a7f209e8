"""What-if: replays the commits of a table under other policies and rules."""
