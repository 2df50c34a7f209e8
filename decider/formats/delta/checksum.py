"""`<version>.crc` has the number of files of a version and their total size: a check of the rolling state for free.

Not every writer writes one, and it may be wrong, so a difference only starts a check.
"""

from json import loads

from decider.formats.table_format import TableTotals


def checksum_name(version: int) -> str:
    """Return the name of a checksum file below `_delta_log`."""
    return f"{version:020d}.crc"


def read_checksum(body: bytes) -> TableTotals | None:
    """Read a checksum file; None for anything that does not hold both numbers."""
    try:
        found = loads(body)
    except (ValueError, RecursionError):
        return None
    files, total = (found.get(name) for name in ("numFiles", "tableSizeBytes")) if isinstance(found, dict) else (0, "")
    if type(files) is not int or type(total) is not int or files < 0 or total < 0:
        return None
    return TableTotals(files, total)
