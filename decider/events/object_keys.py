"""Hints from object keys: only a commit file in a Delta log is one.

A bucket can be mapped to another URI prefix, such as a directory that is served as a bucket.
"""

import re

from decider.events.table_hint import IgnoredReason, TableHint
from shared.errors import InvalidInput
from shared.locations import key_location
from shared.table import MAX_VERSION

COMMIT_KEY = re.compile(r"(.+)/_delta_log/(\d{20})\.json", re.ASCII | re.DOTALL)
"""The only keys that matter; checksums, checkpoints, staged, compacted and temporary files do not match."""

ICEBERG_KEY = re.compile(r"(?:.+/)?metadata/[^/]+\.metadata\.json", re.DOTALL)
"""What an Iceberg commit writes last."""


def hint_of_key(prefix: str, key: str) -> TableHint | IgnoredReason:
    """Return the hint of a written object if its key is a commit's and names a location below the prefix."""
    match = COMMIT_KEY.fullmatch(key)
    if match is None:
        return IgnoredReason.ICEBERG if ICEBERG_KEY.fullmatch(key) else IgnoredReason.NOT_A_COMMIT
    version = int(match[2])
    try:
        location = key_location(prefix, match[1])
    except InvalidInput:
        return IgnoredReason.BAD_KEY
    return TableHint(location, version=version) if version <= MAX_VERSION else IgnoredReason.BAD_KEY
