"""A group is written to a local disk only if there is room for it: a full disk stops the table's writers.

Object stores and HDFS show no such limit, so they are not checked.
"""

from fractions import Fraction

from actor.formats.delta.log import TableLog
from shared.errors import RetryableError

MIB = 1 << 20

OUTPUT_RATIO = Fraction(5, 4)
"""Bytes of output expected at most for a byte of input: merged files compress alike, other encodings may cost some."""


def require_free_space(log: TableLog, input_bytes: int, *, reserved_bytes: int) -> None:
    """Raise RetryableError unless outputs of these inputs would leave `reserved_bytes` free on the table's disk."""
    free = log.free_bytes()
    needed = int(input_bytes * OUTPUT_RATIO) + reserved_bytes
    if free is not None and free < needed:
        raise RetryableError(
            f"the disk of {log.location} has {free // MIB} MiB left, and rewriting {input_bytes // MIB} MiB takes up "
            f"to {needed // MIB} MiB with the {reserved_bytes // MIB} MiB kept for the table's writers; nothing was "
            "written. Free space (VACUUM removes files that no version needs), then it is tried again",
        )
