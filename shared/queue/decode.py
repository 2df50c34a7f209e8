"""Replies become values here, once; no list and no bytes travel further inward."""

import json
from collections.abc import Sequence
from typing import Any

from shared.errors import InvalidInput
from shared.queue.model import (
    Band,
    CancelOutcome,
    Claim,
    DecideOutcome,
    Enqueued,
    EnqueueOutcome,
    Finished,
    FinishOutcome,
    HeartbeatEntry,
    HeartbeatReply,
    HeartbeatStatus,
    Ingested,
    JobId,
    JobKey,
    JobState,
    MoveOutcome,
    StopReason,
    Token,
)
from shared.queue.records import JobView, QueueDepth, RunRecord


def text(raw: bytes | str) -> str:
    """Return a reply's text, whichever way the client was asked to return it."""
    return raw.decode() if isinstance(raw, bytes) else raw


def enqueued(raw: Any) -> Enqueued:
    """Read {outcome, state}."""
    return Enqueued(EnqueueOutcome(text(raw[0])), JobState(text(raw[1])))


def claims(raw: Any) -> tuple[Claim, ...]:
    """Read the JSON list that claim.lua describes."""
    return tuple(_claim(fields) for fields in json.loads(text(raw)))


def _claim(fields: Sequence[str]) -> Claim:
    (
        job,
        table,
        partition,
        kind,
        tenant,
        band,
        priority,
        token,
        previous,
        *numbers,
        cost,
        payload,
        first_ms,
        until,
        crashes,
        refusals,
    ) = fields
    attempts, revision, version, extent = numbers
    return Claim(
        id=JobId(job),
        key=JobKey(table, partition, kind),
        tenant=tenant,
        band=Band(int(band)),
        priority=int(priority),
        token=Token(int(token)),
        previous_token=Token(int(previous)) if previous else None,
        attempts=int(attempts),
        revision=int(revision),
        version=int(version),
        extent=int(extent),
        cost_bytes=int(cost),
        payload=payload,
        enqueued_at_ms=int(first_ms),
        lease_until_ms=int(until),
        engine_crashes=int(crashes),
        refusals=refusals,
    )


def beat_replies(beats: Sequence[HeartbeatEntry], raw: Any) -> tuple[HeartbeatReply, ...]:
    """Read OK, LOST or STOP:reason for each beat."""
    return tuple(_beat_reply(beat, text(one)) for beat, one in zip(beats, raw, strict=True))


def _beat_reply(beat: HeartbeatEntry, reply: str) -> HeartbeatReply:
    status, _, reason = reply.partition(":")
    return HeartbeatReply(beat.id, HeartbeatStatus(status), StopReason(reason) if reason else None)


def finished(raw: Any) -> Finished:
    """Read the outcome's one word."""
    return Finished(FinishOutcome(text(raw)))


def finished_and_claimed(raw: Any) -> tuple[Finished, tuple[Claim, ...]]:
    """Read the outcome's one word, and the claims behind a blank."""
    outcome, _, leased = text(raw).partition(" ")
    return finished(outcome), claims(leased)


def cancelled(raw: Any) -> CancelOutcome:
    """Read the outcome's one word."""
    return CancelOutcome(text(raw))


def decided(raw: Any) -> DecideOutcome:
    """Read the outcome's one word."""
    return DecideOutcome(text(raw))


def move(raw: Any) -> MoveOutcome:
    """Read the outcome's one word."""
    return MoveOutcome(text(raw))


def ingested(raw: Any) -> Ingested:
    """Read [applied, version, outcome of each job]."""
    applied, version, *outcomes = json.loads(text(raw))
    return Ingested(applied, int(version), tuple(EnqueueOutcome(outcome) for outcome in outcomes))


def nothing(_raw: Any) -> None:
    """Read a reply that only confirms that the script ran."""


def flag(raw: Any) -> bool:
    """Read 1 or 0."""
    return int(raw) == 1


def configured(raw: Any) -> None:
    """Read 1, or the back-off's {base, cap} that contradict each other."""
    if isinstance(raw, list):
        base, cap = map(int, raw)
        raise InvalidInput(
            f"the base of the back-off would be {base} ms, above its cap of {cap} ms; set both in one call",
            field="backoff_base_ms",
            allowed=f"1..{cap}",
        )


def depth(raw: Any) -> QueueDepth:
    """Read {now, queued, delayed, leased, quarantined, arrival of the oldest}."""
    now, queued, delayed, leased, quarantined, oldest = raw
    counts = {
        JobState.QUEUED: int(queued),
        JobState.DELAYED: int(delayed),
        JobState.LEASED: int(leased),
        JobState.QUARANTINED: int(quarantined),
    }
    return QueueDepth(int(now), counts, int(oldest) if oldest else None)


def job_view(raw: Any) -> JobView | None:
    """Read {id, time of its index, fields}; None if there is no such job."""
    if not raw:
        return None
    job, at, fields = text(raw[0]), text(raw[1]), _fields(raw[2])
    state = JobState(fields["state"])
    waits = state in (JobState.DELAYED, JobState.QUARANTINED)
    is_held = state is JobState.DELAYED and fields.get("why") in ("window", "budget")
    return JobView(
        id=JobId(job),
        key=JobKey(fields["table"], fields["partition"], fields["kind"]),
        tenant=fields["tenant"],
        state=state,
        band=Band(int(fields["band"])),
        priority=int(fields["prio"]),
        cost_bytes=int(fields["cost"]),
        version=int(fields["version"]),
        payload=fields["payload"],
        enqueued_at_ms=int(fields["first_ms"]),
        attempts=int(fields["attempts"]),
        revision=int(fields["revision"]),
        token=Token(int(fields["token"])) if "token" in fields else None,
        ready_at_ms=int(at) if waits and at else None,
        lease_until_ms=int(at) if state is JobState.LEASED and at else None,
        worker=fields.get("worker"),
        started_ms=int(fields["started"]) if "started" in fields else None,
        progress=fields.get("progress"),
        stop=StopReason(fields["stop"]) if "stop" in fields else None,
        error=fields.get("error"),
        pending_version=int(fields["d_version"]) if "d_version" in fields else None,
        engine_crashes=int(fields.get("crashes", 0)),
        opens_ms=int(fields["opens"]) if is_held else None,
        holder=fields.get("holder", "window") if is_held else "",
    )


def job_views(raw: Any) -> tuple[JobView, ...]:
    """Read a list of jobs."""
    return tuple(view for one in raw if (view := job_view(one)) is not None)


def run_record(raw: Any) -> RunRecord:
    """Read one entry of the history."""
    entry, fields = text(raw[0]), _fields(raw[1])
    return RunRecord(
        entry_id=entry,
        id=JobId(fields["job"]),
        key=JobKey(fields["table"], fields["partition"], fields["kind"]),
        tenant=fields["tenant"],
        band=Band(int(fields["band"])),
        token=Token(int(fields["token"])),
        run_result=fields["run_result"],
        outcome=fields["outcome"],
        worker=fields["worker"],
        attempts=int(fields["attempts"]),
        version=int(fields["version"]),
        cost_bytes=int(fields["cost"]),
        enqueued_at_ms=int(fields["first_ms"]),
        started_ms=int(fields["started"]),
        finished_ms=int(fields["finished"]),
        result=fields["result"],
        error=fields["error"],
        group=fields.get("group", ""),
    )


def _fields(flat: Sequence[bytes | str]) -> dict[str, str]:
    return {text(name): text(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}
