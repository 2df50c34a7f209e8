"""The rows that every table of this benchmark holds, by their number: the same rows, however they are stored.

`id` and `arrived` rise with the order of arrival, so that files and row groups can be skipped by them; others do not.
`account` has few values, so that one dictionary for many rows takes less than many dictionaries for few.
"""

import random
from array import array

import pyarrow as pa
import pyarrow.compute as pc

ACCOUNTS = 20_000
KINDS = tuple(f"kind-{number:02d}" for number in range(20))
NAME_BYTES = 24
JITTER = 20_000
"""By how much `arrived` differs from the order of arrival, in rows: neighboring files overlap in it."""

ROWS_PER_TICK = 1_000
COLUMNS = ("id", "arrived", "account", "amount", "rate", "kind", "name")


def rows_from(first: int, count: int, *, seed: int) -> pa.Table:
    """Return the rows from number `first` on; `first` and `seed` determine all values."""
    dice = random.Random(f"{seed}-{first}")
    ids = pa.array(range(first, first + count), pa.int64())
    jitter = _below(dice, count, JITTER * ROWS_PER_TICK)
    return pa.table(
        {
            "id": ids,
            "arrived": pc.add(pc.multiply(ids, pa.scalar(ROWS_PER_TICK, pa.int64())), jitter),
            "account": _below(dice, count, ACCOUNTS),
            "amount": _below(dice, count, 1 << 31),
            "rate": pc.divide(_below(dice, count, 1 << 52).cast(pa.float64()), float(1 << 52)),
            "kind": pa.array(KINDS).take(_below(dice, count, len(KINDS))),
            "name": _names(dice, count),
        }
    )


def _below(dice: random.Random, count: int, bound: int) -> pa.Array:
    """Return random integers from 0 to `bound` - 1."""
    found = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(dice.randbytes(8 * count))])
    positive = pc.bit_wise_and(found, pa.scalar((1 << 62) - 1, pa.int64()))
    share = pc.divide(positive.cast(pa.float64(), safe=False), float(1 << 62))
    if bound > 1 << 50:  # Beyond what a float can distinguish: a power of two, taken bit by bit.
        return pc.bit_wise_and(positive, pa.scalar(bound - 1, pa.int64()))
    return pc.floor(pc.multiply(share, float(bound))).cast(pa.int64())


def _names(dice: random.Random, count: int) -> pa.Array:
    ends = array("i", range(0, NAME_BYTES * (count + 1), NAME_BYTES))
    letters = dice.randbytes(NAME_BYTES // 2 * count).hex().encode()
    return pa.Array.from_buffers(pa.utf8(), count, [None, pa.py_buffer(ends), pa.py_buffer(letters)])
