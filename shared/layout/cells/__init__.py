"""Cells: an order of rows by several columns whose cost grows with what is new, and not with the table; pure."""
