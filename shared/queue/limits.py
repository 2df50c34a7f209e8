"""Every bound of the queue in one place, because a script that loops without a bound stops the whole server.

The checks raise InvalidInput before anything is sent: inside a script an error would not roll back.
"""

import re

from shared.errors import InvalidInput

MAX_INTEGER = 2**53 - 1
"""Lua numbers are doubles: above this, integers lose their last digits."""

MAX_COST_BYTES = 2**50
"""1 PiB; larger than any partition, small enough that start tags stay below 2^53 for thousands of such jobs."""

MAX_PRIORITY = 31
"""0 is served first, 31 last; each step, a factor of two in benefit per cost, is worth one ageing interval (cfg
`aging_ms`). The benefit per cost of a lake's jobs differs by a factor of thousands, and so do the reads of tables."""

MAX_PRECEDENCE = 9
"""0 is for events, 1 for forced requests of a person; few ranks keep their meaning clear."""

MAX_EXTENT = 9
"""0 is the smallest extent of a job; a few ranks are plenty, as for precedence."""

MAX_TRACE_BYTES = 55
"""Length of a W3C `traceparent`; a job keeps eight of them."""

CRASHES_UNTIL_EXCLUSIVE = 2  # As in lua/include/run_end.lua; tests compare them.
"""Runs of a job under which an engine died, or an actor fell silent, until it runs alone there: one may be chance
or another job's doing. If an engine dies once more it is this job's doing, and the job is quarantined."""

MAX_GROUPS = 16  # As in lua/include/group.lua.
"""Groups of one queue: each claim looks where else a job may run."""

MAX_SLOTS = 32
"""Jobs per claim; more would let one script hold the server for milliseconds."""

MAX_SHARED_JOBS = MAX_SLOTS
"""Jobs that share a commit, which one claim leases as it would lease as many single ones."""

MAX_BEATS = 100
"""Jobs per heartbeat, the bound of every loop in a script."""

MAX_PAGE = 100
"""History records per page."""

MAX_FORESEEN = 20
"""Claims foreseen per call; each takes some 45 microseconds of the server, and a script may take a millisecond."""

MAX_JOBS_READ = 50
"""Jobs per page of a list; each is read whole, and a hundred took longer than the millisecond a script may take."""

MAX_JOBS = 100
"""Jobs per ingest."""

MAX_PARTITIONS = 1_000
"""Partitions per ingest."""

MAX_RESET_PARTITIONS = 100_000
"""Partitions per ingest with reset: a whole table is replaced in one script, some 100 ms for the largest."""

LEDGER_KEPT = 1_000
"""Ledger records per table that Redis holds, without an archive: some weeks of decisions of a busy table."""

LEDGER_KEPT_TO_ARCHIVE = 5_000
"""The same with an archive, which also trims them after a week: a minute of the widest commits, with slack for an
unavailable store. Beyond it the oldest are dropped, archived or not, because memory is bounded."""

MAX_TIMERS = 8 * MAX_PARTITIONS
"""Timers per ingest: three for each partition, as many again that rewrites made needless, and two of partitions that
time lets into a filter."""

MAX_RESET_TIMERS = 5 * MAX_RESET_PARTITIONS
"""Timers per ingest with reset: three for each partition, and two of those that time lets into a filter."""

MAX_LEDGER = 1_000
"""Ledger records per ingest."""

MAX_COUNTERS = 100
"""Counters per finish or ingest."""

MAX_TABLE_STATE_FIELDS = 40
"""Fields of a table's cursor."""

MAX_NAME_CHARS = 300
"""Length of a table id, tenant, kind or worker name; they are parts of keys."""

MAX_PARTITION_BYTES = 16 * 1024
"""A partition key: partition values as text."""

MAX_TIMER_BYTES = MAX_PARTITION_BYTES + 100
"""Name of a timer: a word and a partition key."""

MAX_PAYLOAD_BYTES = 16 * 1024
"""Payload of a job; the job carries no file list, so this is plenty."""

MAX_PROGRESS_BYTES = 4 * 1024
"""Progress is rewritten with every heartbeat and must stay small."""

MAX_RESULT_BYTES = 64 * 1024
"""Result of a run; 10,000 of them are kept in the history."""

MAX_REFUSALS_BYTES = 64 * 1024
"""Limit for the refused files of a partition: more than `partition_refusals.MAX_BYTES`, which bounds them."""

MAX_WINDOW_BYTES = 16 * 1024
"""A work window: its text, and the times of two weeks."""

MAX_ERROR_CHARS = 2_000
"""An error message is cut here, so that a stack trace cannot fill the store."""

LEASE_RANGE_MS = (1_000, 24 * 3_600_000)
"""A lease shorter than a second cannot be kept alive; one longer than a day hides a dead worker."""

MAX_DELAY_MS = 7 * 24 * 3_600_000
"""Longest debounce: a week."""

MAX_ABILITIES = 100
"""Abilities of one actor: formats times kinds of job."""

_NAME = re.compile(r"[^\s|{}\x00-\x1f\x7f]+")
_WORD = "[a-z0-9][a-z0-9_-]{0,39}"
_QUEUE = re.compile(f"{_WORD}(/{_WORD})?")


def require_name(value: str, field: str) -> None:
    """Raise InvalidInput for a name that cannot be part of a key: empty, too long, with blanks, braces or `|`."""
    if len(value) > MAX_NAME_CHARS or not _NAME.fullmatch(value):
        raise InvalidInput(
            f"{field} {value[:80]!r} cannot be part of a key; use 1 to {MAX_NAME_CHARS} characters without blanks,"
            " braces, control characters or '|'",
            field=field,
            allowed=_NAME.pattern,
        )


def require_queue(queue: str) -> None:
    """Refuse a name of a queue, or of a group of one (`queue/group`), that is not of short lower-case words."""
    if not _QUEUE.fullmatch(queue):
        raise InvalidInput(
            f"queue {queue[:80]!r} is no queue name; use 1 to 40 of a-z, 0-9, '_' and '-'; a group of it follows "
            "behind a '/'",
            field="queue",
            allowed=_QUEUE.pattern,
        )


def require_range(value: int, field: str, low: int, high: int) -> None:
    """Refuse an integer outside low..high, both included."""
    if not low <= value <= high:
        raise InvalidInput(
            f"{field} is {value}; use a value from {low} to {high}", field=field, allowed=f"{low}..{high}"
        )


def require_bytes(text: str, field: str, limit_bytes: int) -> None:
    """Refuse a text whose UTF-8 form is longer than the limit."""
    # A character takes at most four bytes, so that most texts need not be encoded to be measured.
    if len(text) * 4 > limit_bytes and (size := len(text.encode())) > limit_bytes:
        raise InvalidInput(f"{field} has {size} bytes; the limit is {limit_bytes}", field=field)


def require_count(count: int, field: str, limit: int) -> None:
    """Refuse more items than a script may loop over; the caller splits the batch."""
    if count > limit:
        raise InvalidInput(
            f"{count} {field} in one call; split it into batches of at most {limit}", field=field, allowed=f"0..{limit}"
        )
