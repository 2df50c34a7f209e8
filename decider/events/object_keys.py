"""Hints from object keys: only a commit file in a Delta log is one, or a metadata file of an Iceberg table.

A bucket can be mapped to another URI prefix, such as a directory that is served as a bucket.
"""

import re

from decider.events.table_hint import IgnoredReason, TableHint
from shared.errors import InvalidInput
from shared.paths.locations import key_location
from shared.table import MAX_VERSION

COMMIT_KEY = re.compile(r"(.+)/_delta_log/(\d{20})\.json", re.ASCII | re.DOTALL)
"""The only keys that matter; checksums, checkpoints, staged, compacted and temporary files do not match."""

ICEBERG_KEY = re.compile(r"(.+)/[^/]+\.metadata\.json", re.DOTALL)
"""The object that an Iceberg commit writes last, in the folder of the metadata."""

ICEBERG_FOLDER_KEY = re.compile(r"(.+)/metadata/v\d{1,18}(?:\.gz)?\.metadata\.json(?:\.gz)?", re.ASCII | re.DOTALL)
"""The same in the folder of a table without a catalog; other tables have other names of files."""


def hint_of_key(prefix: str, key: str) -> TableHint | IgnoredReason:
    """Return the hint of a written object if its key is a commit's and names a location below the prefix."""
    match = COMMIT_KEY.fullmatch(key)
    folder = match or ICEBERG_FOLDER_KEY.fullmatch(key) or ICEBERG_KEY.fullmatch(key)
    if folder is None:
        return IgnoredReason.NOT_A_COMMIT
    # The number of Iceberg's metadata file is no version of ours.
    version = None if match is None else int(match[2])
    try:
        location = key_location(prefix, folder[1])
    except InvalidInput:
        return IgnoredReason.BAD_KEY
    if folder.re is ICEBERG_KEY:
        return TableHint(metadata_folder=location)
    return TableHint(location, version=version) if (version or 0) <= MAX_VERSION else IgnoredReason.BAD_KEY
