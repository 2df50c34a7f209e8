"""The checker of `make chaos` must be able to fail: each promise that is broken in a history is seen."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.checker import Findings, judge
from tests.chaos.history import Ack, Claimed, Committed, Ended, History, Rollback

JOB, TABLE = "job", "t0"
LEASE_US = 1_500_000
SECOND = 1_000_000_000


def ack(version: int, at: float, outcome: str | None = "queued") -> Ack:
    return Ack(JOB, TABLE, version, outcome, _ns(at - 0.1), _ns(at))


def claimed(version: int, at: float, token: float | None = None) -> Claimed:
    return Claimed(JOB, _token(at if token is None else token), version, _ns(at - 0.1), _ns(at))


def committed(seen: int, at: float, token: float) -> Committed:
    return Committed(JOB, _token(token), seen, _ns(at))


def ended(seen: int, at: float, token: float, verdict: str = "done", outcome: str | None = "deleted") -> Ended:
    return Ended(JOB, _token(token), verdict, seen, outcome, _ns(at - 0.1), _ns(at))


def _ns(at: float) -> int:
    return round(at * SECOND)


def _token(at: float) -> int:
    return round(at * 1_000_000)


GOOD = History(
    events={JOB: (0, 3, 5, 7)},
    # 0 is served alone; 3 arrives while its run goes on, 5 while that job waits again; 7 finds nothing.
    acks=(ack(0, 1), ack(3, 2.5, "rerun"), ack(5, 4, "merged"), ack(7, 9)),
    claims=(claimed(0, 2), claimed(5, 5), claimed(5, 7), claimed(7, 10)),
    commits=(committed(0, 2.8, 2), committed(5, 7.5, 7), committed(7, 10.5, 10)),
    ends=(
        ended(0, 3, 2, outcome="requeued"),
        ended(5, 6, 5, "yield", "requeued"),
        ended(5, 8, 7),
        ended(7, 11, 10, outcome=None),
    ),
)


def findings(history: History) -> Findings:
    return judge(history, lease_us=LEASE_US)


def swapped(history: History, field: str, index: int, *new: object) -> History:
    """The history with one of its entries replaced, or left out."""
    entries = list(getattr(history, field))
    entries[index : index + 1] = new
    changed: dict[str, Any] = {field: tuple(entries)}
    return replace(history, **changed)


def test_a_clean_history_is_good() -> None:
    found = findings(GOOD)
    assert found.broken == ()
    assert found.duplicates == 0


BROKEN: dict[str, tuple[str, Callable[[], History]]] = {
    "the last event is never served": ("lost_events", lambda: swapped(GOOD, "ends", 3)),
    "an event in the middle is dropped: the next one finds no job, and no run has served it": (
        "lost_events",
        lambda: swapped(swapped(GOOD, "ends", 1), "ends", 1),
    ),
    "an event in the middle is dropped with a failed run: the next claim does not see it": (
        "blind_claims",
        lambda: swapped(GOOD, "claims", 1, claimed(0, 5)),
    ),
    "the run that covers an event was stale": (
        "lost_events",
        lambda: swapped(GOOD, "ends", 2, ended(5, 8, 7, outcome="STALE")),
    ),
    "the run that covers an event ended after the next one had found no job": (
        "lost_events",
        lambda: swapped(GOOD, "ends", 2, ended(5, 9.5, 7)),
    ),
    "the run that covers an event failed": ("lost_events", lambda: swapped(GOOD, "ends", 2, ended(5, 8, 7, "fail"))),
    "an event was never acknowledged": ("lost_events", lambda: replace(GOOD, events={JOB: (0, 3, 5, 7, 8)})),
    "what was taken back was never told again": (
        "lost_events",
        lambda: replace(GOOD, rollbacks=(Rollback(TABLE, 5, _ns(12), _ns(13)),)),
    ),
    "a token comes twice": ("tokens_reused", lambda: swapped(GOOD, "claims", 2, claimed(5, 7, 5))),
    "a token goes back across workers": ("tokens_backwards", lambda: swapped(GOOD, "claims", 2, claimed(5, 7, 4.5))),
    "a claim sees less than an earlier one, without an acknowledgement": (
        "blind_claims",
        lambda: swapped(swapped(swapped(GOOD, "acks", 2), "claims", 2, claimed(3, 7)), "ends", 2, ended(5, 8, 7)),
    ),
    "a stale end is accepted": (
        "stale_ends_accepted",
        lambda: swapped(GOOD, "ends", 1, ended(5, 7.4, 5, "yield", "requeued")),
    ),
    "a job is leased twice at once": (
        "double_leases",
        lambda: replace(swapped(GOOD, "ends", 1), claims=(*GOOD.claims[:1], claimed(5, 6), *GOOD.claims[2:])),
    ),
    "a run commits after its successor has": (
        "late_commits",
        lambda: replace(GOOD, commits=(*GOOD.commits, committed(5, 7.6, 5))),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_seen(name: str) -> None:
    field, made = BROKEN[name]
    found = findings(made())
    assert getattr(found, field), found
    assert found.broken


def test_two_workers_whose_tokens_go_back_are_not_compared_each_with_itself_alone() -> None:
    """Token 2 by one worker as of version 0, then token 1 by another as of version 1, of the same key."""
    history = History(
        events={JOB: (0, 1)},
        acks=(ack(0, 0.5), ack(1, 2.5, "rerun")),
        claims=(claimed(0, 1, 2), claimed(1, 4, 1)),
        commits=(),
        ends=(ended(0, 3, 2, outcome="requeued"), ended(1, 5, 1)),
    )
    assert findings(history).tokens_backwards


def test_any_one_event_of_many_whose_job_vanishes_is_seen() -> None:
    """Each event has a run of its own; whichever run is missing, its event is missed although later ones are served."""
    for missing in range(20):
        history = History(
            events={JOB: tuple(range(20))},
            acks=tuple(ack(version, 10 * version + 1) for version in range(20)),
            claims=tuple(claimed(version, 10 * version + 3) for version in range(20) if version != missing),
            commits=(),
            ends=tuple(ended(n, 10 * n + 4, 10 * n + 3) for n in range(20) if n != missing),
        )
        assert findings(history).lost_events == (f"{JOB} version {missing}",)


def test_what_redis_lost_and_was_told_again_is_not_held_against_the_queue() -> None:
    """The claim in between saw less, and the run that served the event was done twice."""
    rollback = Rollback(TABLE, 0, _ns(12), _ns(13))
    again = History(
        events=GOOD.events,
        acks=(*GOOD.acks, ack(3, 15), ack(5, 15.2, "merged"), ack(7, 15.4, "merged")),
        claims=(*GOOD.claims, claimed(0, 14), claimed(7, 17)),
        ends=(*GOOD.ends, ended(0, 14.5, 14), ended(7, 18, 17)),
        commits=(*GOOD.commits, committed(7, 17.5, 17)),
        rollbacks=(rollback,),
    )
    found = findings(again)
    assert found.broken == ()
    assert found.duplicates == 1
    assert findings(replace(again, rollbacks=())).blind_claims, "without the loss the claim saw too little"


def test_what_the_old_master_was_told_while_its_replica_took_over_is_not_expected_of_the_new_one() -> None:
    history = History(
        events={JOB: (0, 3)},
        acks=(ack(0, 1), ack(3, 5.5, "merged"), ack(3, 8)),
        claims=(claimed(0, 6), claimed(3, 9)),
        commits=(),
        ends=(ended(0, 7, 6), ended(3, 10, 9)),
        rollbacks=(Rollback(TABLE, 2, _ns(5), _ns(6.5)),),
    )
    assert findings(history).broken == ()
    assert findings(replace(history, rollbacks=())).blind_claims
