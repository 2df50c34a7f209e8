"""Where a rewrite's outputs lie: on paths that no engine escapes, under names that only this attempt uses.

A remove by delta-rs does not hit a file whose path is escaped (see `shared.data_paths`). So an output lies in the
partition's Hive-style folder only if nothing of it needs escaping, otherwise in a folder of random letters, as Delta
itself places files under `delta.randomizeFilePrefixes` and under column mapping. The transaction that outputs are
written through is never committed, so its metadata may ask for that without changing the table's.

Delta leaves the files of failed tasks where they are, and tells nobody their names. All files of an attempt begin
with the attempt's own prefix: what it left can be found in the few folders it wrote to.
"""

import json
import re
import threading
import uuid
from collections.abc import Collection, Sequence
from typing import Any

from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from actor.jvm.scala import Scala, jvm_session
from shared.data_paths import is_plain
from shared.errors import PermanentError
from shared.table import FileKey, PartitionColumn

_NAME_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix"
"""Delta's only setting for names of data files; static for applications, so it is set below their interface."""

_RANDOM_PREFIXES = "delta.randomizeFilePrefixes"
_PREFIX_LENGTH = "delta.randomPrefixLength"
_DEFAULT_PREFIX_LENGTH = 2  # Delta's own default.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.-]*")
_PLAIN_TYPES = re.compile(r"string|byte|short|integer|long|boolean|date|decimal\(\d+,-?\d+\)")
"""Types whose values Spark writes into a folder's name with the characters that the log's text has."""
_LONGEST_PLAIN_DATE = len("9999-12-31")  # Spark writes later years with a plus sign.


def hive_folder(columns: Sequence[PartitionColumn], values: dict[str, str | None]) -> str | None:
    """Return the Hive-style folder of these partition values, None if any character of it would be escaped."""
    segments = []
    for column in columns:
        value = values[column.physical] or ""
        plain = _PLAIN_TYPES.fullmatch(column.type) and _PLAIN_VALUE.fullmatch(value)
        if not plain or (column.type == "date" and len(value) > _LONGEST_PLAIN_DATE):
            return None
        segments.append(f"{column.physical}={value or _HIVE_NULL}")
    folder = "/".join(segments)
    return folder if not folder or is_plain(folder) else None


class OutputPaths:
    """Transactions to write groups through, and what this attempt has left on disk. Safe to use from several threads.

    `txn` is a transaction that is never committed; the session belongs to this attempt alone (see `sessions`).
    """

    def __init__(self, scala: Scala, log: TableLog, txn: Any, shape: TableShape) -> None:
        self.prefix = f"lw{uuid.uuid4().hex[:16]}-"
        self._scala = scala
        self._log = log
        self._by_value = txn
        self._shape = shape
        self._columns = shape.metadata.partition_columns
        self._lock = threading.Lock()
        self._random: Any = None
        self._folders: set[str] = set()
        self._conf: Any = jvm_session(log.session).sessionState().conf()
        self._conf.setConfString(_NAME_PREFIX, self.prefix)

    def close(self) -> None:
        """Give the session back as it was: later files of it must not bear this attempt's prefix."""
        self._conf.unsetConf(_NAME_PREFIX)

    def transaction_for(self, values: dict[str, str | None]) -> Any:
        """Return the transaction whose files for these partition values lie on plain paths."""
        configuration = self._shape.metadata.configuration
        mapped = configuration.get("delta.columnMapping.mode", "none") != "none"
        folder = None if mapped else hive_folder(self._columns, values)
        with self._lock:
            if folder is not None and configuration.get(_RANDOM_PREFIXES, "false").lower() != "true":
                self._folders.add(folder)
                return self._by_value
            if self._random is None:
                self._random = self._with_random_prefixes()
            return self._random

    def _with_random_prefixes(self) -> Any:
        metadata = json.loads(self._shape.metadata_json)["metaData"]
        metadata["configuration"] = {**(metadata.get("configuration") or {}), _RANDOM_PREFIXES: "true"}
        txn = self._log.transaction(self._by_value.snapshot())
        set_metadata = getattr(txn, "newMetadata_$eq")  # No check and no change of the protocol: it is never committed.
        set_metadata(self._scala.some(self._scala.metadata(json.dumps(metadata))))
        return txn

    def check(self, live: LiveGroup, paths: Collection[str]) -> None:
        """Raise PermanentError if an output lies where an engine could spell its path in another way."""
        for path in paths:
            if not is_plain(path):
                raise PermanentError(
                    f"the rewrite of {live.group.cell} of {self._log.location} was stopped before its commit: its "
                    f"output {path!r} lies on a path that some engines escape, so that their removes would miss it. "
                    "The table is unchanged; please report this with the table's schema",
                )

    def leftovers(self, known: Collection[FileKey]) -> list[FileKey]:
        """List the files of this attempt that are not among the known ones; call it when no thread writes."""
        with self._lock:
            folders, scattered = sorted(self._folders), self._random is not None
        found = [path for folder in folders for path in self._log.list_names(folder, f"{self.prefix}*")]
        if scattered:
            length = int(self._shape.metadata.configuration.get(_PREFIX_LENGTH, _DEFAULT_PREFIX_LENGTH))
            for folder in self._log.list_names("", "?" * length):
                found += self._log.list_names(folder, f"{self.prefix}*")
        return [key for key in map(FileKey, found) if key not in known]
