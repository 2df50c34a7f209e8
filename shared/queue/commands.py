"""The transitions of a job's life, each a value that one script carries out as a whole or not at all.

Everything that can be wrong with a call is found here, before anything is sent: a script that fails half-way would
leave its writes standing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from functools import partial
from hashlib import blake2b

from shared.errors import InvalidInput
from shared.queue import decode, keys, limits
from shared.queue.command import Command
from shared.queue.limits import require_bytes, require_count, require_name, require_range
from shared.queue.lua_library import ScriptName
from shared.queue.model import (
    ALONE,
    NO_TABLE_STATE,
    CancelOutcome,
    Claim,
    DecideOutcome,
    Enqueued,
    ExpectedTableState,
    Finished,
    HeartbeatEntry,
    HeartbeatReply,
    Ingested,
    JobId,
    JobRequest,
    RefusalsChange,
    RunResult,
    Share,
    StagedState,
    Timer,
    Token,
)
from shared.queue.settings import require_settings

_DECIDER = "decider"
"""The caller in whose name replies to deciders are remembered; their nonces differ."""

UNCHANGED = "-"
"""Refusals of a run that leaves what is remembered of its partition as it is, as in lua/include/finish_run.lua."""


def configure(queue: str, settings: Mapping[str, int]) -> Command[None]:
    """Write the settings that are given, by name (`settings.SETTINGS`); repeating it changes nothing."""
    require_settings(settings)
    args = tuple(part for pair in settings.items() for part in pair)
    return Command(ScriptName.CONFIGURE, _keys(queue), args, decode.configured)


def enqueue(queue: str, request: JobRequest) -> Command[Enqueued]:
    """Request a job; merged if there is one with this key already."""
    return Command(ScriptName.ENQUEUE, _keys(queue), _request_args(request), decode.enqueued)


def claim(  # noqa: PLR0913 - who, for how long, and what it can and wants to run
    queue: str,
    *,
    worker: str,
    nonce: str,
    slots: int,
    lease_ms: int,
    abilities: Sequence[str] = (),
    share: Share = ALONE,
    is_busy: bool = False,
) -> Command[tuple[Claim, ...]]:
    """Lease jobs for up to `slots` slots and `lease_ms`; the same worker and nonce get the same jobs again.

    abilities: what the worker can do, each as `format/kind`; jobs that need another one are set aside for those that
    have it. None: every job.
    share: for one slot, further ready jobs of the claimed one's table, tenant, band and kind, in their order. Jobs that
    failed before are claimed alone.
    is_busy: whether other programs use the worker's machine, so that it takes no background jobs.
    """
    _require_caller(worker, nonce)
    require_range(slots, "slots", 1, limits.MAX_SLOTS if share.jobs == 1 else 1)
    require_range(lease_ms, "lease_ms", *limits.LEASE_RANGE_MS)
    require_count(len(abilities), "abilities", limits.MAX_ABILITIES)
    for ability in abilities:
        require_name(ability, "ability")
    args: tuple[str | int, ...] = (worker, nonce, slots, lease_ms, share.jobs, share.bytes, int(is_busy), *abilities)
    return Command(ScriptName.CLAIM, _keys(queue), args, decode.claims)


def heartbeat(
    queue: str, *, worker: str, beats: Sequence[HeartbeatEntry], lease_ms: int, is_busy: bool = False
) -> Command[tuple[HeartbeatReply, ...]]:
    """Extend the leases of these jobs to `lease_ms` from now; one reply for each, in the order given.

    is_busy: as in `claim`; background jobs are asked to stop.
    """
    require_name(worker, "worker")
    require_count(len(beats), "beats", limits.MAX_BEATS)
    require_range(lease_ms, "lease_ms", *limits.LEASE_RANGE_MS)
    args: list[str | int] = [lease_ms, int(is_busy)]
    for beat in beats:
        require_bytes(beat.progress, "progress", limits.MAX_PROGRESS_BYTES)
        args += (beat.id, beat.token, beat.progress)
    return Command(ScriptName.HEARTBEAT, _keys(queue), tuple(args), partial(decode.beat_replies, tuple(beats)))


def finish(  # noqa: PLR0913 - the end of a run has that many parts, and splitting them would split the transaction
    queue: str,
    *,
    worker: str,
    nonce: str,
    id: JobId,  # noqa: A002 - the field's name everywhere else
    token: Token,
    run_result: RunResult,
    cost_bytes: int,
    seen_version: int,
    result: str = "",
    counters: Mapping[str, int] | None = None,
    measures: Mapping[str, int] | None = None,
    error: str = "",
    refusals: str | None = None,
) -> Command[Finished]:
    """End a run.

    cost_bytes: bytes that the run actually read, to reconcile the estimate it was charged with.
    seen_version: newest table version the run planned on (-1: none); with DONE, it satisfies requests up to it.
    counters, measures: increments; the latter go into the table's sums over its newest runs, counted by `runs`.
    result: opaque JSON text for the history; error: a sentence for people, cut at 2,000 characters.
    refusals: opaque text, what is remembered of the refused files of its partition from now on; empty for nothing,
    None to leave it as it is.
    """
    _require_caller(worker, nonce)
    require_range(cost_bytes, "cost_bytes", 0, limits.MAX_COST_BYTES)
    require_range(seen_version, "seen_version", -1, limits.MAX_INTEGER)
    require_bytes(result, "result", limits.MAX_RESULT_BYTES)
    remembered = UNCHANGED if refusals is None else refusals
    require_bytes(remembered, "refusals", limits.MAX_REFUSALS_BYTES)
    cut = error[: limits.MAX_ERROR_CHARS]
    run = (worker, nonce, id, token, run_result.value, cost_bytes, seen_version, result, cut)
    args = (*run, remembered, len(counters or {}), *_counters(counters or {}), *_counters(measures or {}))
    return Command(ScriptName.FINISH, _keys(queue), args, decode.finished)


def finish_and_claim(
    finish: Command[Finished], claim: Command[tuple[Claim, ...]]
) -> Command[tuple[Finished, tuple[Claim, ...]]]:
    """End a run and claim as these two commands would one after the other, in one call under the nonce of the finish.

    A finish that is refused (STALE) claims nothing.
    """
    args = (len(claim.args), *claim.args, *finish.args)
    return Command(ScriptName.FINISH_AND_CLAIM, finish.keys, args, decode.finished_and_claimed)


def cancel(queue: str, job: JobId, *, nonce: str, max_version: int | None = None) -> Command[CancelOutcome]:
    """Delete a waiting job, ask a running one to stop; requests recorded before this call are cancelled with it.

    max_version: a job that was requested at a later version of its table is left alone, and unknown; None: any.
    """
    require_name(nonce, "nonce")
    upto = "" if max_version is None else max_version
    return Command(ScriptName.CANCEL, _keys(queue), (nonce, job, upto), decode.cancelled)


def ingest(  # noqa: PLR0913 - one commit's consequences belong into one transaction
    queue: str,
    *,
    table: str,
    expected_version: int,
    expected_state: ExpectedTableState = NO_TABLE_STATE,
    state_fields: Mapping[str, str],
    partitions: Mapping[str, str | None],
    reset: bool | StagedState = False,
    jobs: Sequence[JobRequest] = (),
    ledger: Sequence[tuple[str, int]] = (),
    counters: Mapping[str, int] | None = None,
    ledger_kept: int = limits.LEDGER_KEPT,
    timers: Sequence[Timer] = (),
    refusals: Sequence[RefusalsChange] = (),
) -> Command[Ingested]:
    """Move a table's cursor from version `expected_version` (-1: none yet), with everything that follows from it.

    expected_state: the other fields of the cursor when it was read. Partitions that were counted under one policy, or
    before a rebuild, must not be mixed with changes that were applied under another or written after it, although the
    version is the same. partitions: new state of each changed partition, None to drop it; with `reset` all others are
    dropped first, and all timers. reset: or the staged state that replaces the others; unless it is complete, nothing
    is written. refusals: what is remembered of partitions' refused files; if it is another than expected, nothing is
    written. ledger: (record, index into `jobs` or -1); the record is stored with the outcome of that job.
    Without `reset` the new version must be above `expected_version`, or a repetition could not be distinguished from a
    first call.
    """
    require_name(table, "table")
    version = _state_version(state_fields)
    if not reset:
        require_range(version, "cursor version", expected_version + 1, limits.MAX_INTEGER)
    require_range(expected_version, "expected", -1, limits.MAX_INTEGER)
    require_range(ledger_kept, "ledger_kept", 1, 1_000_000)
    require_count(len(partitions), "partitions", limits.MAX_RESET_PARTITIONS if reset else limits.MAX_PARTITIONS)
    require_count(len(jobs), "jobs", limits.MAX_JOBS)
    require_count(len(ledger), "ledger records", limits.MAX_LEDGER)
    require_count(len(timers), "timers", limits.MAX_RESET_TIMERS if reset else limits.MAX_TIMERS)
    require_count(len(refusals), "refusals", limits.MAX_RESET_PARTITIONS if reset else limits.MAX_PARTITIONS)
    states = [part for partition, state in partitions.items() if state is not None for part in (partition, state)]
    dropped = [partition for partition, state in partitions.items() if state is None]
    counts = _counters(counters or {})
    sizes = (len(state_fields), len(states) // 2, len(dropped), len(jobs), len(ledger), len(counts) // 2, len(timers))
    body = [part for field in state_fields.items() for part in field]
    body += states
    body += dropped
    for spec in jobs:
        if spec.key.table != table:
            raise InvalidInput(f"a job for table {spec.key.table} was passed with the log of {table}", field="jobs")
        body += map(str, _request_args(spec))
    for record, index in ledger:
        require_range(index, "index of a ledger record's job", -1, len(jobs) - 1)
        body += (record, str(index + 1))
    body += map(str, counts)
    body += [part for timer in timers for part in (timer.name, timer.change.value, str(timer.fires_at_ms))]
    body += [part for change in refusals for part in (change.partition, change.expected, change.new)]
    staged = reset if isinstance(reset, StagedState) else StagedState(str(int(reset)), 0, 0)
    head: tuple[str | int, ...] = (staged.name, ledger_kept, *sizes, staged.partitions, staged.timers, len(refusals))
    expected = "|".join((str(expected_version), *astuple(expected_state)))
    args: tuple[str | int, ...] = (table, expected, _digest(table, expected, *head, *body), *head, *body)
    return Command(ScriptName.INGEST, _keys(queue), args, decode.ingested)


def forget_refusals(queue: str, table: str, partitions: Sequence[str]) -> Command[None]:
    """Forget what is remembered of the refused files of these partitions, so that they get another attempt."""
    require_name(table, "table")
    require_count(len(partitions), "partitions", limits.MAX_PARTITIONS)
    return Command(ScriptName.FORGET_REFUSALS, _keys(queue), (table, *partitions), decode.nothing)


def decide(  # noqa: PLR0913 - timer, job, record and counters belong into one transaction
    queue: str,
    *,
    nonce: str,
    table: str,
    timer: Timer | None = None,
    rearm_at_ms: int = 0,
    job: JobRequest | None = None,
    record: str = "",
    counters: Mapping[str, int] | None = None,
    ledger_kept: int = limits.LEDGER_KEPT,
) -> Command[DecideOutcome]:
    """Carry out a decision that no commit led to.

    timer: the one that fired, as it was read; if it has changed since, nothing is written. It is deleted, or set to
    `rearm_at_ms` if a job with the same key exists; then nothing else is written. Without a job it is also set to
    `rearm_at_ms` if that is not 0: it fired too early for one.
    record: kept in the ledger with the outcome of the job.
    """
    _require_caller(_DECIDER, nonce)
    require_name(table, "table")
    require_range(rearm_at_ms, "again_ms", 0, limits.MAX_INTEGER)
    require_range(ledger_kept, "ledger_kept", 1, 1_000_000)
    if job is not None and job.key.table != table:
        raise InvalidInput(f"a job for table {job.key.table} was passed with a decision about {table}", field="job")
    rung = (timer.name, timer.fires_at_ms) if timer else ("", 0)
    head = (_DECIDER, nonce, table, *rung, rearm_at_ms, record, ledger_kept, int(job is not None))
    args = (*head, *(_request_args(job) if job else ()), *_counters(counters or {}))
    return Command(ScriptName.DECIDE, _keys(queue), args, decode.decided)


def _keys(queue: str) -> tuple[str, ...]:
    return (keys.prefix(queue),)


def _request_args(request: JobRequest) -> tuple[str | int, ...]:
    key, wait = request.key, request.debounce
    return (
        *(request.id, key.table, key.partition, key.kind),
        *(request.tenant, int(request.band), request.priority, request.cost_bytes),
        *(request.version, request.payload, wait.quiet_ms, wait.max_delay_ms, request.precedence, request.extent),
        *(request.trace, int(request.any_time) or -int(request.gives_way)),
    )


def _require_caller(worker: str, nonce: str) -> None:
    require_name(worker, "worker")
    require_name(nonce, "nonce")


def _counters(counters: Mapping[str, int]) -> tuple[str | int, ...]:
    require_count(len(counters), "counters", limits.MAX_COUNTERS)
    for name, increment in counters.items():
        require_name(name, "counter")
        require_range(increment, f"counter {name}", -limits.MAX_INTEGER, limits.MAX_INTEGER)
    return tuple(part for counter in counters.items() for part in counter)


def _state_version(state_fields: Mapping[str, str]) -> int:
    require_count(len(state_fields), "cursor fields", limits.MAX_TABLE_STATE_FIELDS)
    version = state_fields.get("version", "")
    # The script compares texts, so that only the plain decimal form is safe.
    if not version.isascii() or not version.isdigit() or str(int(version)) != version:
        raise InvalidInput(
            f"a cursor needs its version as a plain number, not {version!r}", field="cursor", allowed="0, 1, 2, …"
        )
    return int(version)


def _digest(*parts: str | int) -> str:
    """Identify a call by its content, so that a repetition is recognized, whichever process sends it."""
    encoded = [str(part).encode() for part in parts]
    state = blake2b(",".join(map(str, map(len, encoded))).encode(), digest_size=16)
    state.update(b":")
    state.update(b"".join(encoded))
    return state.hexdigest()
