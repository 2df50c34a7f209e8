"""File layout theory: size levels, partition statistics, eligibility, file selection, packing and planning; pure."""
