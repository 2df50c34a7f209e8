"""Append-only Delta table that stores every batch of records exactly once, across crashes and repetitions.

A batch has an increasing number, committed as a `txn` action: a number that the table has is not appended again, and of
two writers with one number the log rejects one. So nothing has to be undone, and the outcome of an earlier attempt does
not matter.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from shared.errors import RetryableError

NOTE = "lakewright.archive"
"""Key in commitInfo with the content of a batch, to restore lost progress from."""

RETRIES = 20
"""Conflicting commits that one append retries after, before it is left to the next run."""

PATIENCE = {"connect_timeout": "2s", "timeout": "5s", "max_retries": "2", "retry_timeout": "10s"}
"""Time limit of requests to an object store, unless its options set another. Short, because `deltalake` holds the
interpreter's lock in some of its calls: while it waits there, so does the whole decider."""

NOTES_READ = 200
"""Commits read first for notes; doubled until all requested ones are found."""


@dataclass(frozen=True, slots=True)
class ArchiveSpec:
    """Location of an archive, its schema, partition columns and object store options."""

    location: str
    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


class DeltaArchive:
    """Appends batches of records to one Delta table; safe to share, and safe beside other processes.

    `app` names a row of batches whose numbers rise; an archive may hold several such rows.
    """

    def __init__(self, place: ArchiveSpec) -> None:
        self.place = place

    async def append(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        app: str,
        number: int,
        note: Mapping[str, Any] | None = None,
        after: int | None = None,
    ) -> bool:
        """Append a batch unless it, or a later one of `app`, is there already; True if this call wrote it.

        rows: one mapping per record, by column. note: JSON that is kept with the commit, see `notes`. after: the batch
        that this one was made to follow; if another one is the newest by now, nothing is written.
        Raises RetryableError where the store does not take it; whether it was written is then seen by `newest`.
        """
        return await asyncio.to_thread(self._append, rows, app, (number, after), dict(note or {}))

    async def newest(self, app: str) -> int:
        """Return the highest batch number of `app` that the table holds, -1 if it holds none or does not exist."""
        return await asyncio.to_thread(self._newest, app)

    async def notes(self, app: str, *, above: int) -> list[dict[str, Any]] | None:
        """Return the notes of the batches of `app` with a number above `above`, the newest first.

        None if log retention removed commits that may have contained some of them.
        """
        return await asyncio.to_thread(self._notes, app, above)

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of an SQL query on the table, which it names `archive`; none if there is no table."""
        return await asyncio.to_thread(self._ask, query)

    def _append(
        self, rows: Sequence[Mapping[str, Any]], app: str, place: tuple[int, int | None], note: dict[str, Any]
    ) -> bool:
        number, after = place
        data = pa.Table.from_pylist([dict(row) for row in rows], schema=self.place.schema)
        try:
            table = self._opened() or self._created()
            newest = _seen(table, app)
            if newest >= number or after not in (None, newest):
                return False
            write_deltalake(
                table,
                data,
                mode="append",
                commit_properties=CommitProperties(
                    custom_metadata={NOTE: json.dumps({"app": app, "number": number} | note)},
                    max_commit_retries=RETRIES,
                    app_transactions=[Transaction(app, number)],
                ),
            )
        except CommitFailedError as refused:
            # The log refused it: another caller committed this number, or there were many others in between.
            if self._newest(app) >= number:
                return False
            raise self._failed("append to", refused) from refused
        except (DeltaError, OSError) as problem:
            raise self._failed("append to", problem) from problem
        return True

    def _newest(self, app: str) -> int:
        try:
            table = self._opened()
            return -1 if table is None else _seen(table, app)
        except (DeltaError, OSError) as problem:
            raise self._failed("read", problem) from problem

    def _notes(self, app: str, above: int) -> list[dict[str, Any]] | None:
        limit = NOTES_READ
        while True:
            try:
                table = self._opened()
                commits = [] if table is None else table.history(limit)
            except (DeltaError, OSError) as problem:
                raise self._failed("read", problem) from problem
            found = (json.loads(commit[NOTE]) for commit in commits if NOTE in commit)
            notes = [note for note in found if note["app"] == app]
            # The newest comes first and numbers only rise: the first wanted one ends the search.
            is_found = bool(notes) and notes[-1]["number"] <= above + 1
            if is_found or not commits or commits[-1]["version"] == 0:
                return [note for note in notes if note["number"] > above]
            if len(commits) < limit:
                return None
            limit *= 2

    def _ask(self, query: str) -> list[dict[str, Any]]:
        try:
            table = self._opened()
            if table is None:
                return []
            found = QueryBuilder().register("archive", table).execute(query).read_all()
        except (DeltaError, OSError) as problem:
            raise self._failed("read", problem) from problem
        return list(pa.table(found).to_pylist())

    def _opened(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.place.location, storage_options=self._options())
        except TableNotFoundError:
            return None

    def _created(self) -> DeltaTable:
        """Create the table; of two that do it at once the second finds the first one's."""
        DeltaTable.create(
            self.place.location,
            self.place.schema,
            mode="ignore",
            partition_by=list(self.place.partition_by),
            storage_options=self._options(),
        )
        # Opened again, not brought up to date: that would hold the interpreter's lock while it waits for the store.
        return DeltaTable(self.place.location, storage_options=self._options())

    def _options(self) -> dict[str, str] | None:
        if self.place.location.startswith("file:"):
            return None
        return PATIENCE | dict(self.place.options)

    def _failed(self, doing: str, problem: Exception) -> RetryableError:
        first_line = str(problem).split("\n", 1)[0]
        return RetryableError(f"cannot {doing} the archive at {self.place.location}: {first_line}")


def _seen(table: DeltaTable, app: str) -> int:
    version = table.transaction_version(app)
    return -1 if version is None else int(version)
