"""Metadata that Lakewright stores in a commit's userMetadata, so that a table's own log suffices for its history.

Files, sizes and rows are in the commit's own actions; the metadata adds who wrote it, when the rewrite began, and the
size levels that it was planned with. Other releases read it years later, so a missing field is None, and only job and
token are required.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shared.index.stats import IndexSideStats
from shared.policy.levels import SizeLevels, build_size_levels
from shared.table import CellReport, CommitOrigin

KEY = "lakewright"
"""The field of userMetadata that is ours; what others put beside it is theirs."""

FORM = 1
"""Version of the mark's form; it grows when a field changes its meaning, not when one is added."""


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """Who wrote a commit, and what its actions do not contain.

    others: further jobs that have groups in the same commit, which then has no single partition.
    partition: key of the partition; round: which of the job's rewrites; mode: a `RewriteMode`; started_ms: when the
    rewrite began, in milliseconds since 1970; size_levels: the size levels that it was planned with; partition_files
    and partition_small_files: the partition's files before it.
    Of the end of a vacuum: the version up to which all removed files are gone, the moment before which they were
    removed, and whether files that no commit names are gone, too (1 or 0).
    deduplicated_version: of the last commit of a removal of older rows: the version up to which all rows were compared.
    traceparent: context of the span that wrote it, if traces are recorded. index_input: index data of the files that it
    removes, which the removals lack; index_selection: by which strategy they were chosen. proofread: by what all of
    its groups were compared with their inputs at least: `rows`, `bytes` or `unverified`.
    Of a table in cells: bytes that are due after the run; settled_files and settled_bytes: of files that others wrote
    and that it left where they are.
    """

    origin: CommitOrigin
    others: tuple[CommitOrigin, ...] = ()
    partition: str | None = None
    round: int | None = None
    mode: str | None = None
    started_ms: int | None = None
    size_levels: SizeLevels | None = None
    partition_files: int | None = None
    partition_small_files: int | None = None
    vacuumed_version: int | None = None
    vacuumed_until_ms: int | None = None
    vacuumed_orphans: int | None = None
    deduplicated_version: int | None = None
    traceparent: str | None = None
    index_input: IndexSideStats | None = None
    index_selection: str | None = None
    proofread: str | None = None
    left_bytes: int | None = None
    settled_files: int | None = None
    settled_bytes: int | None = None

    @property
    def origins(self) -> tuple[CommitOrigin, ...]:
        """All jobs of the commit, with their tokens."""
        return (self.origin, *self.others)

    @property
    def write_id(self) -> str:
        """Name of this one rewrite: a claim of a job commits once per round."""
        return f"{self.origin.job}/{self.origin.token}/{self.round or 0}"

    @property
    def cell_report(self) -> CellReport | None:
        """The report of a run on a table in cells, None for any other commit."""
        counts = self.left_bytes, self.settled_files, self.settled_bytes
        known = [max(0, count) for count in counts if count is not None]
        return CellReport(*known) if len(known) == len(CellReport._fields) else None

    def encode(self) -> str:
        """Write the mark as the text of userMetadata, some 250 bytes; None is left out."""
        body: dict[str, Any] = {"form": FORM, "job": self.origin.job, "token": self.origin.token}
        if self.others:
            body["others"] = [[other.job, other.token] for other in self.others]
        for name in _PLAIN:
            body[name] = getattr(self, name)
        if self.size_levels is not None:
            levels = self.size_levels
            fitted = [levels.typical_file_bytes] if levels.typical_file_bytes else []
            body["size_levels"] = [levels.target_bytes, levels.fan_in, levels.full_bytes, *fitted]
        if self.index_input is not None:
            body["index_input"] = self.index_input.encode()
        kept = {name: value for name, value in body.items() if value is not None}
        return json.dumps({KEY: kept}, separators=(",", ":"))


_PLAIN: Mapping[str, type] = {
    "partition": str,
    "round": int,
    "mode": str,
    "started_ms": int,
    "partition_files": int,
    "partition_small_files": int,
    "vacuumed_version": int,
    "vacuumed_until_ms": int,
    "vacuumed_orphans": int,
    "deduplicated_version": int,
    "traceparent": str,
    "index_selection": str,
    "proofread": str,
    "left_bytes": int,
    "settled_files": int,
    "settled_bytes": int,
}


def with_proofread(user_metadata: str, compared_by: str) -> str:
    """Return a mark of ours that says by what its groups were compared, which is known only as it is committed."""
    if not user_metadata or not compared_by:
        return user_metadata
    body = json.loads(user_metadata)
    return json.dumps({**body, KEY: {**body[KEY], "proofread": compared_by}}, separators=(",", ":"))


def decode(user_metadata: object) -> CommitMetadata | None:
    """Read a commit's userMetadata; None for one that is not ours, whatever it holds: it is theirs and no error."""
    if not isinstance(user_metadata, str) or KEY not in user_metadata:
        return None
    try:
        parsed = json.loads(user_metadata)
    except (ValueError, RecursionError):
        return None
    ours = parsed.get(KEY) if isinstance(parsed, dict) else None
    if not isinstance(ours, dict):
        return None
    origin = _origin(ours.get("job"), ours.get("token"))
    if origin is None:
        return None
    if type(form := ours.get("form", 0)) is not int or form > FORM:
        return CommitMetadata(origin)  # Written by a later release, whose fields may mean something else.
    plain: dict[str, Any] = {
        name: value if type(value := ours.get(name)) is kind else None for name, kind in _PLAIN.items()
    }
    return CommitMetadata(
        origin,
        _others(ours.get("others")),
        size_levels=_size_levels(ours.get("size_levels")),
        index_input=IndexSideStats.decode(ours.get("index_input")),
        **plain,
    )


def _origin(job: object, token: object) -> CommitOrigin | None:
    if not isinstance(job, str) or not job or type(token) is not int or token < 0:
        return None
    return CommitOrigin(job, token)


def _others(raw: object) -> tuple[CommitOrigin, ...]:
    pairs = raw if isinstance(raw, list) else []
    found = [_origin(*pair) for pair in pairs if isinstance(pair, list) and len(pair) == 2]  # noqa: PLR2004 - a pair
    return tuple(origin for origin in found if origin is not None)


def _size_levels(raw: object) -> SizeLevels | None:
    if not isinstance(raw, list) or len(raw) not in (3, 4) or any(type(number) is not int for number in raw):
        return None
    target, fan_in, full, typical_bytes = (*raw, 0)[:4]
    if not (target > 0 and fan_in > 1 and 0 < full <= target):
        return None
    return build_size_levels(target, fan_in, Fraction(full, target), typical_file_bytes=typical_bytes)
