"""The files of the scans that were made last: what plans a rewrite, what writes it and its commit read one snapshot.

They are let go of with the job.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from actor.formats.iceberg.inputs import LiveInput
from shared.table import PartitionKey

SCANS = 2
"""Scans that are kept, one for each of the jobs that an actor runs at once by default."""

MOST_FILES = 5_000
"""Files of a scan that is kept: each takes some 3 KiB, most of it in the JVM."""

ScanKey = tuple[str, str, int, frozenset[PartitionKey] | None]
"""Location, UUID, snapshot, and the partitions that the scan was pruned to (None: it was not)."""


@dataclass(frozen=True, slots=True)
class Scan:
    """The live files of a scan by path, and the paths that are live twice; has_floats: metrics of floats were read."""

    files: Mapping[str, LiveInput]
    twice: frozenset[str]
    has_floats: bool


class ScanCache:
    """Some scans of any tables; safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scans: OrderedDict[ScanKey, Scan] = OrderedDict()

    def get(self, key: ScanKey, *, floats: bool) -> Scan | None:
        """Return a scan that is kept, if it has what is asked for."""
        with self._lock:
            found = self._scans.get(key)
            return None if found is None or floats > found.has_floats else found

    def put(self, key: ScanKey, scan: Scan) -> None:
        """Keep a scan, instead of those that were made first; a large one is not kept."""
        if len(scan.files) > MOST_FILES:
            return
        with self._lock:
            self._scans[key] = scan
            self._scans.move_to_end(key)
            if len(self._scans) > SCANS:
                self._scans.popitem(last=False)

    def drop(self, location: str) -> None:
        """Let go of a table's scans."""
        with self._lock:
            for key in [one for one in self._scans if one[0] == location]:
                del self._scans[key]
