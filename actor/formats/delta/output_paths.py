"""Where a rewrite's outputs lie: on paths that every engine spells alike, under names that only this attempt uses.

delta-rs fails to remove a file if it escapes the path differently from the engine that wrote it (see
`shared.paths.data_paths`), and some engines take partition values from folders. So an output lies in the partition's
Hive-style folder if nothing of it needs escaping. Otherwise the folder is the one that delta-rs makes, with every
special byte as a percent code on disk (`p=a%20b`, in the log `p=a%2520b`), and below it a folder of random letters, as
under `delta.randomizeFilePrefixes`. Only where no folder can name the values (column mapping, a column's name that
needs escaping, a text too long for a file system) the random folder stands alone. The transactions that outputs are
written through are never committed, so their metadata and folder may be set without changing the table's.

Delta leaves the files of failed tasks in place, and does not report their names. All files of an attempt begin
with the attempt's own prefix: what it left can be found in the few folders it wrote to.
"""

import json
import re
import secrets
import string
import threading
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from actor.formats.delta.delta_scala import DeltaScala
from actor.formats.delta.live_files import LiveGroup
from actor.formats.delta.log import TableLog, TableShape
from shared.errors import PermanentError
from shared.paths.data_paths import file_name, is_absolute, is_plain, is_portable
from shared.table import FileKey, PartitionColumn

_NAME_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix"
"""Delta's only setting for names of data files; static for applications, so it is set below their interface."""

_RANDOM_PREFIXES = "delta.randomizeFilePrefixes"
_PREFIX_LENGTH = "delta.randomPrefixLength"
_DEFAULT_PREFIX_LENGTH = 2  # Delta's own default.
_PREFIX_LETTERS = string.ascii_letters + string.digits  # Delta's own choice.
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_FOLDER_SETTER = "org$apache$spark$sql$delta$files$TransactionalWrite$_setter_$deltaDataSubdir_$eq"
"""A folder above all files: what Delta itself sets to `data` by `spark.databricks.delta.write.dataFilesToSubdir`."""

_LONGEST_SEGMENT_BYTES = 255
"""Maximum bytes of one folder's name, in the file systems of Linux, macOS and HDFS."""

_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_.-]*")
_PLAIN_TYPES = re.compile(r"string|byte|short|integer|long|boolean|date|decimal\(\d+,-?\d+\)")
"""Types whose values Spark writes into a folder's name with the characters that the log's text has."""
_PART = re.compile(r"part-(\d+)-")
_LONGEST_PLAIN_DATE = len("9999-12-31")  # Spark writes later years with a plus sign.


def new_prefix() -> str:
    """Return a prefix for the names of one attempt's files."""
    return f"lw{uuid.uuid4().hex[:16]}-"


def part_of(path: str) -> int | None:
    """Return the number of the part that an output was written from, as Spark names it in the file's name."""
    found = _PART.search(path.rpartition("/")[2])
    return None if found is None else int(found[1])


def naming(prefix: str) -> dict[str, str]:
    """Return the session's settings under which Delta writes files of this prefix."""
    return {_NAME_PREFIX: prefix}


def hive_folder(columns: Sequence[PartitionColumn], values: dict[str, str | None]) -> str | None:
    """Return the folder into which Spark writes these partition values, None if it would not name them exactly.

    Exactly: with nothing escaped, and with an empty string distinguished from null.
    """
    segments = []
    for column in columns:
        value = values[column.physical]
        plain = _PLAIN_TYPES.fullmatch(column.type) and _PLAIN_VALUE.fullmatch(value or "")
        # Empty is null by the protocol, and empty to most readers all the same: Spark's folder would mean null.
        if not plain or value == "" or (column.type == "date" and len(value or "") > _LONGEST_PLAIN_DATE):
            return None
        segments.append(f"{column.physical}={value or _HIVE_NULL}")
    folder = "/".join(segments)
    return folder if not folder or is_plain(folder) else None


def encoded_folder(
    columns: Sequence[PartitionColumn], values: Mapping[str, str | None], inputs: Iterable[str]
) -> str | None:
    """Return the Hive-style folder on disk with percent codes for special bytes, None if no folder can name the values.

    The texts are those that the folders of the inputs (paths in the log) name, if one names all columns: engines
    write instants into folders otherwise than into the log. Without such an input they are the log's.
    """
    names = [column.physical for column in columns]
    if not names or not all(map(is_plain, names)):
        return None
    texts = next((found for path in inputs if (found := _folder_texts(names, path))), None)
    if texts is None:
        texts = [_HIVE_NULL if (text := values[name]) is None else text for name in names]
    segments = [f"{name}={quote(text, safe='')}" for name, text in zip(names, texts, strict=True)]
    return "/".join(segments) if max(map(len, segments)) <= _LONGEST_SEGMENT_BYTES else None


def _folder_texts(names: Sequence[str], path: str) -> list[str] | None:
    """Return the values that a data file's folders name, None if they do not name exactly these columns first."""
    if is_absolute(path):
        return None
    folders = [segment.partition("=") for segment in file_name(path).split("/")[: len(names)]]
    return [unquote(text) for _, _, text in folders] if [name for name, _, _ in folders] == list(names) else None


class OutputPaths:
    """Transactions to write groups through, and what this attempt has left on disk. Safe to use from several threads.

    Their transactions write files as the inputs are stored, and are never committed. `prefix`: of the names of all
    files, made by `new_prefix`; the session belongs to this attempt alone (see `sessions`), and its settings are those
    of `naming`.
    """

    def __init__(self, scala: DeltaScala, log: TableLog, snapshot: Any, shape: TableShape, prefix: str) -> None:
        self.prefix = prefix
        self._scala = scala
        self._log = log
        self._snapshot = snapshot
        self._by_value: Any = None
        self.shape = shape
        self._columns = shape.metadata.partition_columns
        self._lock = threading.Lock()
        self._scattering: dict[str | None, Any] = {}
        self._folders: set[str] = set()
        self.has_lost_attempts = False  # Whether an executor may have ended that left a file.

    def transaction_for(self, values: dict[str, str | None], inputs: Iterable[str]) -> Any:
        """Return the transaction whose files for these partition values lie on portable paths.

        inputs: the paths, as in the log, of the files to replace.
        """
        folder, above = self._place(values, inputs)
        with self._lock:
            if folder is not None:
                self._folders.add(folder)
                self._by_value = self._by_value or self._transaction()
                return self._by_value
            if self._scattering.get(above) is None:
                self._scattering[above] = self._with_random_prefixes(above)
            return self._scattering[above]

    def folder_for(self, values: dict[str, str | None], inputs: Iterable[str]) -> str:
        """Return the folder, as Hadoop spells it, that `transaction_for` would have its files written to."""
        folder, above = self._place(values, inputs)
        with self._lock:
            if folder is None:
                self._scattering.setdefault(above, None)
            else:
                self._folders.add(folder)
        if folder is None:
            letters = "".join(secrets.choice(_PREFIX_LETTERS) for _ in range(self._prefix_length))
            folder = f"{above}/{letters}" if above else letters
        return f"{self._log.root}/{folder}" if folder else self._log.root

    def loses_folder(self, values: dict[str, str | None], inputs: Sequence[str]) -> bool:
        """Return whether inputs lie in folders of Hive's style, and the output would lie in one that names no value.

        Some readers take partition values from folders. What Delta encodes has the partition columns in it there.
        """
        folder, above = self._place(values, inputs)
        return folder is None and above is None and any("=" in path.rpartition("/")[0] for path in inputs)

    def note_lost_attempt(self) -> None:
        """Note that a task may have been begun again after its executor had ended, which deletes nothing then."""
        self.has_lost_attempts = True

    def logged_path(self, folder: str, name: str) -> str:
        """Return the path in the log of a file in a folder of `folder_for`."""
        relative = f"{folder}/{name}".removeprefix(f"{self._log.root}/")
        return relative.replace("%", "%25")  # No other character of these names needs to be escaped.

    def _place(self, values: dict[str, str | None], inputs: Iterable[str]) -> tuple[str | None, str | None]:
        """Return the Hive-style folder, or None and what lies above the folders of random letters (None: nothing)."""
        configuration = self.shape.metadata.configuration
        mapped = configuration.get("delta.columnMapping.mode", "none") != "none"
        scattered = mapped or configuration.get(_RANDOM_PREFIXES, "false").lower() == "true"
        folder = None if scattered else hive_folder(self._columns, values)
        if folder is not None or scattered:
            return folder, None
        return None, encoded_folder(self._columns, values, inputs)

    @property
    def _prefix_length(self) -> int:
        return int(self.shape.metadata.configuration.get(_PREFIX_LENGTH, _DEFAULT_PREFIX_LENGTH))

    def _transaction(self) -> Any:
        return self._log.transaction(self._log.stored(self._snapshot))

    def _with_random_prefixes(self, above: str | None) -> Any:
        metadata = json.loads(self.shape.stored.metadata_json)["metaData"]
        metadata["configuration"] = {**(metadata.get("configuration") or {}), _RANDOM_PREFIXES: "true"}
        txn = self._transaction()
        set_metadata = getattr(txn, "newMetadata_$eq")  # No check and no change of the protocol: it is never committed.
        set_metadata(self._scala.some(self._scala.metadata(json.dumps(metadata))))
        if above is not None:
            getattr(txn, _FOLDER_SETTER)(self._scala.some(above))
        return txn

    def check(self, live: LiveGroup, paths: Collection[str]) -> None:
        """Raise PermanentError if an output lies where an engine could spell its path in another way."""
        for path in paths:
            if not is_portable(path):
                raise PermanentError(
                    f"the rewrite of {live.group.partition} of {self._log.location} was stopped before its commit: its "
                    f"output {path!r} lies on a path that some engines escape, so that their removes would miss it. "
                    "The table is unchanged; please report this with the table's schema",
                )

    def leftovers(self, known: Collection[FileKey]) -> list[FileKey]:
        """List the files of this attempt that are not among the known ones; call it when no thread writes."""
        with self._lock:
            folders, scattered = sorted(self._folders), sorted(above or "" for above in self._scattering)
        letters = "?" * self._prefix_length
        folders += [folder for above in scattered for folder in self._log.list_names(above, letters)]
        found = [path for folder in folders for path in self._log.list_names(folder, f"{self.prefix}*")]
        return [key for key in (FileKey(self.logged_path(self._log.root, path)) for path in found) if key not in known]
