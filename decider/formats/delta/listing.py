"""Reads a listing of `_delta_log`: commits and complete checkpoints; all other names mean nothing for the state.

Checksums, temporary files, compacted and staged commits share the directory. A multi-part checkpoint cannot be
written at once, so one with a part missing does not exist.

`<version>.crc` has the number of files of a version and their total size: a check of the rolling state for free.

Not every writer writes one, and it may be wrong, so a difference only starts a check.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from json import loads

from decider.formats.table_format import TableTotals
from shared.table import MAX_VERSION

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = f"{LOG_DIRECTORY}/_sidecars"
LAST_CHECKPOINT = f"{LOG_DIRECTORY}/_last_checkpoint"

MAX_PARTS = 100_000
"""Parts of one checkpoint; a name that claims more is not a checkpoint's."""

_COMMIT = re.compile(r"(\d{20})\.json", re.ASCII)
_CLASSIC = re.compile(r"(\d{20})\.checkpoint\.parquet", re.ASCII)
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet", re.ASCII)
_NAMED = re.compile(
    r"(\d{20})\.checkpoint\.[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\.(?:json|parquet)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its version and the names of its parts below `_delta_log`, in order."""

    version: int
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Commits in ascending order and checkpoints, newest first; `is_partial` if older ones were not listed."""

    commits: tuple[int, ...]
    checkpoints: tuple[Checkpoint, ...]
    is_partial: bool = False

    @property
    def newest(self) -> int | None:
        """The newest version that the listing contains, None if it contains none."""
        return max((*self.commits[-1:], *(point.version for point in self.checkpoints[:1])), default=None)


def commit_name(version: int) -> str:
    """Return the name of a commit file below `_delta_log`."""
    return f"{version:020d}.json"


def commit_version(name: str) -> int | None:
    """Return the version of a commit file, None for any other name."""
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= MAX_VERSION else None


def read_listing(names: Iterable[str], *, is_partial: bool = False) -> Listing:
    """Sort out the names found below `_delta_log`."""
    commits: list[int] = []
    whole: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for name in names:
        if (version := commit_version(name)) is not None:
            commits.append(version)
        elif match := _CLASSIC.fullmatch(name) or _NAMED.fullmatch(name):
            whole.append(Checkpoint(int(match[1]), (name,)))
        elif match := _PART.fullmatch(name):
            parts[int(match[1]), int(match[3])][int(match[2])] = name
    for (version, total), found in parts.items():
        if 0 < total <= MAX_PARTS and found.keys() == set(range(1, total + 1)):
            whole.append(Checkpoint(version, tuple(found[number] for number in sorted(found))))
    legal = (point for point in whole if point.version <= MAX_VERSION)
    # Among checkpoints of one version those in fewer parts come first: they cost fewer requests.
    newest_first = sorted(legal, key=lambda point: (-point.version, len(point.parts), point.parts))
    return Listing(tuple(sorted(commits)), tuple(newest_first), is_partial)


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
