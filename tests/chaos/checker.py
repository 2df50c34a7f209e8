"""Judges a history, key by key over all workers: no event lost, no claim blind, no token or end out of its order.

Three rules together see the loss of any event, not only of the last one of a key. A claim sees whatever was known to
be in the queue when it was requested. An event that finds no job for its key proves that all earlier ones have been
served by then. And at the end every event has been acknowledged and served. Only what Redis itself took back, by a
power cut or a failover, is known no more, until it is told again.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TypeVar

from tests.chaos.history import Ack, Claimed, Committed, Ended, History, Rollback

SLACK_US = 50_000
"""A token may run ahead of the server's clock by one per claim."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What the rules have found; all but the last must be empty."""

    lost_events: tuple[str, ...]
    blind_claims: tuple[str, ...]
    tokens_reused: tuple[str, ...]
    tokens_backwards: tuple[str, ...]
    double_leases: tuple[str, ...]
    stale_ends_accepted: tuple[str, ...]
    late_commits: tuple[str, ...]
    duplicates: int

    @property
    def broken(self) -> tuple[str, ...]:
        """Every broken promise in words."""
        lists = [field.name for field in fields(self) if field.name != "duplicates"]
        return tuple(f"{name}: {one}" for name in lists for one in getattr(self, name))


@dataclass(frozen=True, slots=True)
class _Key:
    """One key's part of the history, each list by time."""

    job: str
    events: tuple[int, ...]
    acks: list[Ack]
    claims: list[Claimed]
    ends: list[Ended]
    commits: list[Committed]
    rollbacks: list[Rollback]

    def was_rolled_back(self, start: int, end: int) -> bool:
        return any(one.start <= end and one.end >= start for one in self.rollbacks)


class _Known:
    """Which versions of a key were known to be in the queue, at any moment."""

    def __init__(self, key: _Key) -> None:
        reported = [(ack.at, ack.version) for ack in key.acks] + [(claim.at, claim.version) for claim in key.claims]
        moments = [(at, "told", version) for at, version in reported if not _is_taken_back(at, version, key.rollbacks)]
        moments += [(one.start, "lost", one.cursor) for one in key.rollbacks]
        known: set[int] = set()
        self._times: list[int] = []
        self._newest: list[int] = []
        for at, what, version in sorted(moments):
            known = known | {version} if what == "told" else {one for one in known if one <= version}
            self._times.append(at)
            self._newest.append(max(known, default=-1))
        self.at_last = known

    def throughout(self, sent: int, at: int) -> int:
        """Return the newest version that was known before a call was sent and not taken back until its reply."""
        first, last = bisect_left(self._times, sent), bisect_left(self._times, at)
        before = self._newest[first - 1] if first else -1
        return min([before, *self._newest[first:last]])


def judge(history: History, *, lease_us: int) -> Findings:
    """Apply all rules; `lease_us`: how long a lease holds without a heartbeat, in microseconds as tokens count."""
    keys = _keys(history)
    return Findings(
        lost_events=_each(_lost(key) for key in keys),
        blind_claims=_each(_blind(key) for key in keys),
        tokens_reused=_reused(history.claims),
        tokens_backwards=_backwards(history.claims),
        double_leases=_each(_double_leases(key, lease_us) for key in keys),
        stale_ends_accepted=_each(_stale_ends(key) for key in keys),
        late_commits=_each(_late_commits(key) for key in keys),
        duplicates=_duplicates(history),
    )


def _is_taken_back(at: int, version: int, rollbacks: Iterable[Rollback]) -> bool:
    """Whether this was told while Redis went down, and is not known since: it was the last word of what is lost."""
    return any(one.start <= at <= one.end and version > one.cursor for one in rollbacks)


def _lost(key: _Key) -> Iterable[str]:
    known = _Known(key)
    done = [end for end in key.ends if end.is_done]
    missed = {version for version in key.events if version not in known.at_last}
    started = {claim.token: claim.sent for claim in key.claims}
    reported = {ack.version: ack.at for ack in key.acks}
    newest_seen = max((end.seen for end in done), default=-1)
    last_start = max((started.get(end.token, -1) for end in done), default=-1)
    missed |= {one for one in key.events if newest_seen < one and last_start <= reported.get(one, last_start)}
    for ack in key.acks:
        if ack.outcome != "queued":
            continue
        # It found no job, so that whatever was known before has been served by a run that is over.
        before = known.throughout(ack.sent, ack.at)
        seen = max((end.seen for end in done if end.sent < ack.at), default=-1)
        if seen < before < ack.version:
            missed |= {version for version in key.events if seen < version <= before}
    return [f"{key.job} version {version}" for version in sorted(missed)]


def _blind(key: _Key) -> Iterable[str]:
    known = _Known(key)
    for claim in key.claims:
        must_see = known.throughout(claim.sent, claim.at)
        if claim.version < must_see:
            yield f"{key.job} token {claim.token} saw version {claim.version}, {must_see} was known"


def _reused(claims: Iterable[Claimed]) -> tuple[str, ...]:
    times = Counter(claim.token for claim in claims)
    return tuple(f"token {token} was given {count} times" for token, count in times.items() if count > 1)


def _backwards(claims: Sequence[Claimed]) -> tuple[str, ...]:
    """Whoever asks after a claim was answered gets a higher token, of whatever key: the queue has one counter."""
    answered = sorted(claims, key=lambda claim: claim.at)
    found, highest, ahead = [], -1, 0
    for claim in sorted(claims, key=lambda claim: claim.sent):
        while ahead < len(answered) and answered[ahead].at < claim.sent:
            highest = max(highest, answered[ahead].token)
            ahead += 1
        if claim.token < highest:
            found.append(f"{claim.job} got token {claim.token} after {highest} was given")
    return tuple(found)


def _double_leases(key: _Key, lease_us: int) -> Iterable[str]:
    sent = {end.token: end.sent for end in key.ends}
    by_token = sorted(key.claims, key=lambda claim: claim.token)
    for first, second in pairwise(by_token):
        is_held = sent.get(first.token, second.at) >= second.at
        is_close = second.token - first.token < lease_us - SLACK_US
        if is_held and is_close and not key.was_rolled_back(first.sent, second.at):
            yield f"{key.job} tokens {first.token} and {second.token}"


def _stale_ends(key: _Key) -> Iterable[str]:
    for end in key.ends:
        if end.outcome in (None, "STALE"):
            continue
        later = [claim for claim in key.claims if claim.token > end.token and claim.at < end.sent]
        if any(not key.was_rolled_back(claim.sent, end.at) for claim in later):
            yield f"{key.job} token {end.token}: {end.outcome}"


def _late_commits(key: _Key) -> Iterable[str]:
    highest = -1
    for commit in key.commits:
        if commit.token < highest:
            yield f"{key.job} token {commit.token} after {highest}"
        highest = max(highest, commit.token)


def _duplicates(history: History) -> int:
    """Count commits of what was committed before; a run that was given back is meant to be repeated."""
    given_back = {end.token for end in history.ends if end.verdict in ("fail", "yield")}
    times = Counter((one.job, one.seen) for one in history.commits if one.token not in given_back)
    return sum(count - 1 for count in times.values())


T = TypeVar("T", Claimed, Ended, Committed)


def _keys(history: History) -> list[_Key]:
    rollbacks: dict[str, list[Rollback]] = defaultdict(list)
    for one in history.rollbacks:
        rollbacks[one.table].append(one)
    tables = {ack.job: ack.table for ack in history.acks}
    acks: dict[str, list[Ack]] = defaultdict(list)
    for ack in sorted(history.acks, key=lambda ack: ack.at):
        acks[ack.job].append(ack)
    claims, ends, commits = _by_job(history.claims), _by_job(history.ends), _by_job(history.commits)
    return [
        _Key(job, history.events.get(job, ()), acks[job], claims[job], ends[job], commits[job], table)
        for job in sorted({*history.events, *acks, *claims, *ends})
        for table in [rollbacks[tables.get(job, "")]]
    ]


def _by_job(entries: Iterable[T]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: entry.at):
        found[entry.job].append(entry)
    return found


def _each(found: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(one for ones in found for one in ones)
