"""Decodes the bytes of one commit into one value, or raises an error that names the line.

A commit file is newline-delimited JSON in no promised order: `commitInfo` may be on any line or missing, and a
`metaData` below decides how the lines above it are to be read. Unknown actions are ignored, as the protocol wants.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from decider.formats.delta.damage import LogFile, parsed_lines, split_lines
from decider.formats.delta.files import FileDecoder
from decider.formats.delta.metadata import decode_metadata, decode_protocol
from shared.formats.delta_vacuum import COMPLETED, VACUUM_END, vacuum_mark
from shared.formats.delta_vacuum_plan import DEFAULT_RETENTION_S, RETENTION
from shared.layout import commit_metadata
from shared.layout.key_runs import DELETE
from shared.policy.parsers import interval
from shared.table import (
    CellReport,
    Commit,
    CommitOrigin,
    DataFile,
    PartitionColumn,
    RemovedFile,
    TableMetadata,
    TableProtocol,
    VacuumMark,
)


def decode_vacuum(info: object, timestamp_ms: int, metadata: TableMetadata | None) -> VacuumMark | None:
    """Return what the vacuum that a commit ends has deleted, None for any other commit.

    Spark and deltalake end one with the same operation, which does not name its retention, so the table's own is
    assumed: if it was longer, the files that are left are found as orphans later; if shorter, a vacuum finds less.
    """
    if not isinstance(info, dict) or info.get("operation") != VACUUM_END:
        return None
    mark = vacuum_mark(info)
    if mark is not None and mark.vacuumed_until_ms is not None:
        return VacuumMark(mark.vacuumed_until_ms, bool(mark.vacuumed_orphans))
    parameters = info.get("operationParameters")
    status = parameters.get("status") if isinstance(parameters, dict) else None
    if str(status).strip('"') != COMPLETED:
        return None
    return VacuumMark(timestamp_ms - _retention_s(metadata) * 1000)


def _retention_s(metadata: TableMetadata | None) -> int:
    spelled = None if metadata is None else metadata.configuration.get(RETENTION)
    try:
        return DEFAULT_RETENTION_S if spelled is None else interval(spelled)
    except ValueError:
        return DEFAULT_RETENTION_S


_METADATA = b'"metaData"'

_MAX_EXECUTION_DIGITS = 12
"""A command of more than thirty years is a mistake in the log."""

ORIGIN_KEY = "lakewright"
"""The field of userMetadata that holds job and token of a commit of ours."""


def decode_commit(
    data: bytes,
    log: LogFile,
    metadata: TableMetadata | None,
    sort_key: PartitionColumn | None = None,
    sort_column: str | None = None,
) -> Commit:
    """Decode a commit file; `metadata` is what was in force before it (None: nothing was, this is the first).

    Ranges of files are read of `sort_key` (None: of the metadata's, for `sort_column` see `decode_metadata`). Files
    added are read with the metadata that the commit leaves in force, removed ones with what was before. Whether the
    table may be read at all is `delta_metadata.check_readable`'s business. Raises Corrupt for damaged lines and
    contradictions, Unsupported for what is well-formed and not known here.
    """
    lines = _lines(data, log)
    changed = _changed_metadata(lines, log, sort_column) if _METADATA in data else None
    after = changed or metadata
    reading = _CommitReader(log, _with_key(after, sort_key), _with_key(metadata or after, sort_key))
    for position, action in parsed_lines(lines, log):
        reading.take(action, position)
    return reading.commit(changed, commit_digest(data))


def commit_digest(data: bytes) -> str:
    """Return a short digest of a commit file: another file of the same version has another one."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _with_key(metadata: TableMetadata | None, sort_key: PartitionColumn | None) -> TableMetadata | None:
    return metadata if metadata is None or sort_key is None else replace(metadata, sort_key=sort_key)


def commit_time_ms(data: bytes, log: LogFile) -> int:
    """Return only the time of a commit, 0 if it has none, without decoding its file actions."""
    for _, action in parsed_lines([line for line in _lines(data, log) if b'"commitInfo"' in line], log):
        info = action.get("commitInfo")
        if info is not None:
            return _time_ms(info)
    return 0


def _lines(data: bytes, log: LogFile) -> Sequence[bytes]:
    if not data:
        raise log.corrupt(0, "the file is empty; expected at least one action")
    return split_lines(data)


def _changed_metadata(lines: Sequence[bytes], log: LogFile, sort_column: str | None) -> TableMetadata | None:
    """Return the metadata that a commit sets; it is searched first, because file actions above it depend on it."""
    found: TableMetadata | None = None
    candidates = [line if _METADATA in line else b"" for line in lines]
    for position, action in parsed_lines(candidates, log):
        if action.get("metaData") is not None:
            if found is not None:
                raise log.corrupt(position, "a second metaData action; expected at most one in a commit")
            found = decode_metadata(action["metaData"], log, position, sort_column)
    return found


class _CommitReader:
    """Collects the actions of one commit."""

    def __init__(self, log: LogFile, after: TableMetadata | None, before: TableMetadata | None) -> None:
        self._log = log
        self._after = after
        self._adds = FileDecoder(after.partition_columns, log, after.sort_key) if after else None
        self._removes = FileDecoder(before.partition_columns, log, before.sort_key) if before else None
        self._added: list[DataFile] = []
        self._removed: list[RemovedFile] = []
        self._protocol: TableProtocol | None = None
        self._info: object = None
        self._data_change = False

    def take(self, action: dict[str, Any], position: int) -> None:
        """Take the actions of one line; there is one as a rule, and null means none."""
        for kind, body in action.items():
            if body is None:
                continue
            if kind == "add":
                self._note_data_change(kind, body, position)
                self._added.append(self._decoder(self._adds, position).add(body, position))
            elif kind == "remove":
                self._note_data_change(kind, body, position)
                self._removed.append(self._decoder(self._removes, position).remove(body, position))
            elif kind == "commitInfo":
                self._info = self._info or body
            elif kind == "protocol":
                self._protocol = decode_protocol(body, self._log, position)
            elif kind == "checkpoint":
                raise self._log.unsupported(position, "a checkpoint action: live files are kept in manifests")

    def commit(self, metadata: TableMetadata | None, digest: str) -> Commit:
        """Return the commit made of everything taken."""
        self._refuse_contradictions()
        operation = self._info.get("operation") if isinstance(self._info, dict) else None
        return Commit(
            version=self._log.version,
            timestamp_ms=_time_ms(self._info),
            operation=operation if isinstance(operation, str) else "",
            added=tuple(self._added),
            removed=tuple(self._removed),
            metadata=metadata,
            protocol=self._protocol,
            data_change=self._data_change,
            digest=digest,
            origin=_origin(self._info),
            execution_ms=_execution_ms(self._info),
            vacuum=decode_vacuum(self._info, _time_ms(self._info), self._after),
            deduplicated_version=_deduplicated_version(self._info),
            cells=_cell_report(self._info),
        )

    def _decoder(self, decoder: FileDecoder | None, position: int) -> FileDecoder:
        if decoder is None:
            raise self._log.corrupt(position, "a file action, but no metaData in this commit or before it")
        return decoder

    def _note_data_change(self, kind: str, action: object, position: int) -> None:
        if type(action) is not dict:
            raise self._log.wrong(position, kind, action, "an object")
        flag = action.get("dataChange")
        if type(flag) is not bool:
            raise self._log.wrong(position, f"{kind}.dataChange", flag, "true or false")
        self._data_change = self._data_change or flag

    def _refuse_contradictions(self) -> None:
        """Refuse one file named twice: the protocol forbids it, and the order of lines must not decide what lives."""
        added = [(file.path, file.dv_id) for file in self._added]
        removed = [(file.path, file.dv_id) for file in self._removed]
        for kind, keys in (("added", added), ("removed", removed)):
            if len(set(keys)) < len(keys):
                (path, _), times = Counter(keys).most_common(1)[0]
                raise self._log.corrupt(0, f"{path} is {kind} {times} times; expected each file at most once")
        both = set(added).intersection(removed)
        if both:
            path, dv_id = min(both, key=str)
            raise self._log.corrupt(0, f"{path} is both added and removed with the deletion vector {dv_id}")


def _time_ms(info: object) -> int:
    """Return the in-commit time, else the writer's clock, else 0: commitInfo is free-form and may hold anything."""
    if not isinstance(info, dict):
        return 0
    for name in ("inCommitTimestamp", "timestamp"):
        value = info.get(name)
        if type(value) is int and value >= 0:
            return value
    return 0


def _execution_ms(info: object) -> int:
    """Return how long the command ran: Spark writes text, delta-rs a number under another name, many nothing."""
    metrics = info.get("operationMetrics") if isinstance(info, dict) else None
    if not isinstance(metrics, dict):
        return 0
    for name in ("executionTimeMs", "execution_time_ms"):
        value = str(metrics.get(name, ""))
        if value.isascii() and value.isdigit() and len(value) <= _MAX_EXECUTION_DIGITS:
            return int(value)
    return 0


def _deduplicated_version(info: object) -> int | None:
    """Return up to which version a removal of older rows has compared all; a mark that was copied means nothing."""
    if not isinstance(info, dict) or info.get("operation") != DELETE:
        return None
    mark = commit_metadata.decode(info.get("userMetadata"))
    return None if mark is None else mark.deduplicated_version


_OPTIMIZE = "OPTIMIZE"


def _cell_report(info: object) -> CellReport | None:
    """Return what a run on a table in cells reports; a mark that was copied means nothing."""
    if not isinstance(info, dict) or info.get("operation") != _OPTIMIZE:
        return None
    mark = commit_metadata.decode(info.get("userMetadata"))
    return None if mark is None else mark.cell_report


def _origin(info: object) -> CommitOrigin | None:
    """Return the job and token of a commit of ours; what others put into userMetadata is theirs and no error."""
    text = info.get("userMetadata") if isinstance(info, dict) else None
    if not isinstance(text, str) or ORIGIN_KEY not in text:
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    ours = parsed.get(ORIGIN_KEY) if isinstance(parsed, dict) else None
    if not isinstance(ours, dict):
        return None
    job, token = ours.get("job"), ours.get("token")
    if not isinstance(job, str) or not job or type(token) is not int or token < 0:
        return None
    return CommitOrigin(job, token)
