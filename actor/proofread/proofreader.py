"""Decides how a group is compared with its inputs before it is committed, and what follows from what a reader finds.

Rows of what was encoded, bytes of what was copied, and rows of the first copy of each kind of files. A difference is
never read again and never committed; what no reader can compare is reported as unverified, or refused in mode strict.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import NoReturn

from actor.proofread.buckets import Credentials, keys_of_environment, secrets_of
from actor.proofread.locations import is_local, is_parquet
from actor.proofread.model import Field, FoundBy, Proof, Reading, Rewritten
from actor.proofread.readers import ReaderDied, Readers
from actor.proofread.task import Answer, ReadEnding, Task, Work
from shared.errors import Difference, RefusedFiles
from shared.paths.store_options import StoreOptions
from shared.policy.policy import Proofread
from shared.refusals import RefusalReason

FIRST_MEMORY_MIB = 256
"""Memory that DuckDB may take at first: enough for every table without very long values or very many columns."""

PROCESS_MIB = 444
"""Address space of Python and DuckDB themselves, and of what DuckDB takes beyond its own limit."""

MOST_KINDS = 10_000
"""Kinds of files of which a copy was compared by rows; one takes 200 bytes, and one forgotten is compared again."""

COPIES_PER_CHECK = 100
"""Copies on object stores of which one is compared, where reading the inputs again costs requests and traffic."""

_ROW_IDS = (
    Field("_row_id", "row_id", 2147483540),
    Field("_last_updated_sequence_number", "row_version", 2147483539),
)


@dataclass(frozen=True, slots=True)
class ProofreadSettings:
    """most_mib: memory that one process may take; stores: options of object stores, as the actor has them.

    credentials: keys of a bucket for which the options have none.
    """

    most_mib: int = FIRST_MEMORY_MIB + PROCESS_MIB
    stores: StoreOptions = field(default_factory=StoreOptions, repr=False)
    credentials: Credentials = keys_of_environment


class Proofreader:
    """Compares groups of any format, from any thread."""

    def __init__(self, settings: ProofreadSettings | None = None) -> None:
        self._settings = settings or ProofreadSettings()
        self._readers = Readers(self._settings.most_mib << 20)
        self._kinds: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def check(self, group: Rewritten, mode: Proofread, *, fingerprint: str = "", tag: str = "") -> Proof:
        """Return what a group was compared by.

        fingerprint: what makes a copy another kind beside the files themselves, such as the path taken; tag: the job.
        Raises Difference, RefusedFiles for files whose columns are unclear, or in mode strict for what no reader
        compares, and RetryableError if the job was canceled.
        """
        if mode is Proofread.NEVER:
            return Proof(Reading.NONE, unverified_because="switched off")
        group = _with_row_ids(group)
        is_copy = group.copied and not any(file.deletes or file.first_row_id is not None for file in group.inputs)
        if is_copy and mode is Proofread.NEW:
            proof = self._check_copy(group, fingerprint, tag)
        else:
            proof = self._check_rows(group, tag)
        return _accepted(group, proof, mode)

    def check_deletes(self, group: Rewritten, mode: Proofread, tag: str) -> Proof:
        """Compare which rows of inputs and outputs, the same files, are deleted; raises what `check` raises."""
        if mode is Proofread.NEVER:
            return Proof(Reading.NONE, unverified_because="switched off")
        found = self._ask(Work.DELETES, group, tag)
        if found.ending is ReadEnding.NO_MEMORY and self._most_memory_mib > FIRST_MEMORY_MIB:
            found = self._ask(Work.DELETES, group, tag, memory_mib=self._most_memory_mib)
        if found.ending in (ReadEnding.SAME, ReadEnding.DIFFERENT, ReadEnding.UNCLEAR):
            return _proof(group, found, "duckdb")
        return _accepted(group, Proof(Reading.NONE, unverified_because=found.text, cpu_ms=found.cpu_ms), mode)

    def cancel(self, tag: str) -> None:
        """End the comparison of a job, which then fails with a RetryableError."""
        self._readers.cancel(tag)

    def close(self) -> None:
        """End all processes."""
        self._readers.close()

    def _check_copy(self, group: Rewritten, fingerprint: str, tag: str) -> Proof:
        """Compare bytes, and rows of the first copy of each kind; of object stores only some copies, by rows."""
        if not all(is_local(file.path) for file in (*group.inputs, *group.outputs)):
            return self._check_remote_copy(group, fingerprint, tag)
        found = self._ask(Work.BYTES, group, tag)
        if found.ending is not ReadEnding.SAME:
            proof = self._check_rows(group, tag)
            if proof.unverified_because and found.ending is ReadEnding.DIFFERENT:
                _raise_difference(group, found)
            return replace(proof, cpu_ms=proof.cpu_ms + found.cpu_ms)
        by_bytes = Proof(Reading.BYTES, found.rows, reader="bytes", cpu_ms=found.cpu_ms)
        kind = f"{fingerprint}\n{found.fingerprint}"
        if self._count(kind) > 0:
            return by_bytes
        proof = self._check_rows(group, tag)
        self._remember(kind)
        cpu_ms = by_bytes.cpu_ms + proof.cpu_ms
        return replace(by_bytes if proof.unverified_because else proof, cpu_ms=cpu_ms)

    def _check_remote_copy(self, group: Rewritten, fingerprint: str, tag: str) -> Proof:
        found = self._ask(Work.FINGERPRINT, group, tag)
        kind = f"{fingerprint}\n{found.fingerprint}"
        if found.ending is ReadEnding.SAME and self._count(kind) % COPIES_PER_CHECK:
            self._remember(kind)
            because = "a copy on an object store, of a kind whose first copy was compared"
            return Proof(Reading.NONE, unverified_because=because, cpu_ms=found.cpu_ms)
        proof = self._check_rows(group, tag)
        if found.ending is ReadEnding.SAME and not proof.unverified_because:
            self._remember(kind)
        return replace(proof, cpu_ms=proof.cpu_ms + found.cpu_ms)

    def _count(self, kind: str) -> int:
        """Return how many copies of this kind were seen."""
        with self._lock:
            return self._kinds.get(kind, 0)

    def _remember(self, kind: str) -> None:
        with self._lock:
            self._kinds[kind] = self._kinds.pop(kind, 0) + 1
            while len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)

    def _check_rows(self, group: Rewritten, tag: str) -> Proof:
        """Compare rows by DuckDB; what it cannot read, by the second reader."""
        first = self._ask(Work.ROWS, group, tag)
        if first.ending is ReadEnding.NO_MEMORY and self._most_memory_mib > FIRST_MEMORY_MIB:
            first = self._ask(Work.ROWS, group, tag, memory_mib=self._most_memory_mib)
        if first.ending in (ReadEnding.SAME, ReadEnding.DIFFERENT, ReadEnding.UNCLEAR):
            return _proof(group, first, "duckdb")
        self._require_readable(Work.ROWS, group, first, tag)
        second = self._ask(Work.ROWS_AGAIN, group, tag)
        cpu_ms = first.cpu_ms + second.cpu_ms
        if second.ending in (ReadEnding.SAME, ReadEnding.DIFFERENT, ReadEnding.UNCLEAR):
            return replace(_proof(group, second, "pyarrow"), cpu_ms=cpu_ms)
        self._require_readable(Work.ROWS_AGAIN, group, second, tag)
        if group.copied:
            self._require_decodable(group, tag)
        return Proof(Reading.NONE, unverified_because=f"{first.text}; {second.text}", cpu_ms=cpu_ms)

    def _require_readable(self, work: Work, group: Rewritten, found: Answer, tag: str) -> None:
        """Raise Difference if a reader that cannot read the group could read it before the rewrite."""
        if found.ending is ReadEnding.UNREADABLE and all(is_parquet(file.path) for file in group.outputs):
            before = self._ask(work, replace(group, outputs=group.inputs), tag)
            if before.ending is ReadEnding.SAME:
                _raise_difference(
                    group, replace(found, text=f"the inputs can be read, the outputs cannot: {found.text}")
                )

    def _require_decodable(self, group: Rewritten, tag: str) -> None:
        """Raise RefusedFiles for a copy of pages that no reader decodes: they would spoil the rows beside them."""
        if broken := self._ask(Work.DECODE, group, tag).files:
            raise RefusedFiles(
                f"{_place(group)} is not rewritten: no reader can decode {', '.join(broken[:3])}; restore them from a "
                "backup, or delete their rows",
                reason=RefusalReason.DAMAGED,
                files=broken,
            )

    @property
    def _most_memory_mib(self) -> int:
        return self._settings.most_mib - PROCESS_MIB // 2

    def _ask(self, work: Work, group: Rewritten, tag: str, *, memory_mib: int = FIRST_MEMORY_MIB) -> Answer:
        alone = work in (Work.ROWS_AGAIN, Work.DECODE) or memory_mib > FIRST_MEMORY_MIB
        try:
            secrets = secrets_of(group, self._settings.stores, self._settings.credentials)
            return self._readers.ask(Task(work, group, memory_mib, secrets), tag, alone=alone)
        except ReaderDied as death:
            return Answer(ReadEnding.DIED, f"the process that read it died: {death}")


def _with_row_ids(group: Rewritten) -> Rewritten:
    """Add the ids of rows to the columns, where the table gives them by Iceberg's reserved fields."""
    gives_ids = any(file.first_row_id is not None for file in group.inputs)
    has_them = any(column.kind == "row_id" for column in group.columns)
    if group.found_by is FoundBy.ID and gives_ids and not has_them:
        return replace(group, columns=(*group.columns, *_ROW_IDS))
    return group


def _place(group: Rewritten) -> str:
    return f"{group.table}, partition {group.partition}" if group.partition else group.table


def _is_of_deletes(group: Rewritten) -> bool:
    """Return whether files stay, and what deletes their rows is replaced."""
    return [one.path for one in group.inputs] == [one.path for one in group.outputs]


def _remedy(group: Rewritten) -> str:
    return "" if _is_of_deletes(group) else "; lakewright.proofread = always would commit it unverified"


def _what(group: Rewritten) -> str:
    if _is_of_deletes(group):
        return "the merged delete files do not delete the rows that those before deleted"
    return "the rewritten files do not hold the rows of their inputs"


def _accepted(group: Rewritten, proof: Proof, mode: Proofread) -> Proof:
    """Return a proof; raises RefusedFiles in mode strict where nothing was compared."""
    if mode is Proofread.STRICT and proof.unverified_because:
        raise RefusedFiles(
            f"{_place(group)} is not rewritten, because its rows cannot be compared before the commit: "
            f"{proof.unverified_because}{_remedy(group)}",
            reason=RefusalReason.UNVERIFIED,
            files=tuple(file.path for file in group.inputs),
        )
    return proof


def _proof(group: Rewritten, found: Answer, reader: str) -> Proof:
    if found.ending is ReadEnding.DIFFERENT:
        _raise_difference(group, found)
    if found.ending is ReadEnding.UNCLEAR:
        raise RefusedFiles(
            f"{_place(group)} is not rewritten: {found.text}; write these files again with an engine that reads them "
            "as you mean them",
            reason=RefusalReason.COLUMNS_UNCLEAR,
            files=tuple(file.path for file in group.inputs),
        )
    return Proof(Reading.ROWS, found.rows, reader=reader, cpu_ms=found.cpu_ms)


def _raise_difference(group: Rewritten, found: Answer) -> NoReturn:
    raise Difference(
        f"{_place(group)}: {_what(group)}, so nothing was committed: "
        f"{found.text}. Report this with the names of the files; they are not tried again as they are",
        files=tuple(file.path for file in group.inputs),
        columns=found.columns,
    )
