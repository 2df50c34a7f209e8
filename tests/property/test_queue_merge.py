"""Merging and fairness as laws, each on a real server: what order and repetition may not change, what sharing means."""

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.queue_executor import SyncQueueExecutor
from services.cli.commands.queue import changes, rows
from shared.queue import commands, keys, queries
from shared.queue.model import Band, Debounce, JobKey, JobRequest, job_id
from shared.queue.settings import SETTINGS
from tests.support.examples import examples
from tests.support.queue_bench import QUEUE
from tests.support.queue_state import emptied

pytestmark = pytest.mark.redis

MIB = 1 << 20
REQUEST = (b"tenant", b"band", b"prio", b"cost", b"version", b"payload", b"extent", b"any_time", b"first_ms")
KEY = JobKey("t", "{}", "compact")

requests = st.builds(
    JobRequest,
    key=st.just(KEY),
    tenant=st.sampled_from(["a", "b", "ä"]),
    band=st.sampled_from(Band),
    priority=st.integers(0, 9),
    cost_bytes=st.integers(0, 3),
    version=st.integers(0, 2),
    payload=st.sampled_from(["", "a", "ab", "B", "ä", "{}"]),
    precedence=st.integers(0, 2),
    extent=st.integers(0, 2),
    any_time=st.booleans(),
    gives_way=st.booleans(),
    debounce=st.sampled_from([Debounce(), Debounce(0, 9), Debounce(3, 5), Debounce(4, 7)]),
)


def merged(queue: SyncQueueExecutor, specs: list[JobRequest], *, while_running: bool) -> tuple[bytes, ...]:
    """Return what becomes of these requests, waiting or beside a run."""
    emptied(queue)
    if while_running:
        queue.run(commands.enqueue(QUEUE, JobRequest(KEY, "zz", Band.LOW, 9, 9, 9, "zz")))
        queue.run(commands.claim(QUEUE, worker="w", nonce="n", slots=1, lease_ms=60_000))
    for spec in specs:
        queue.run(commands.enqueue(QUEUE, spec))
    job = queue.run(queries.job(QUEUE, specs[0].id))
    assert job is not None
    raw: Any = queue.redis.hgetall(keys.job(QUEUE, job.id))
    mark = b"d_" if while_running else b""
    delay = (raw[b"d_quiet"], raw[b"d_max"]) if while_running else (job.ready_at_ms,)
    return (*(raw.get(mark + name, b"0") for name in REQUEST), *delay)


def texts(spec: JobRequest) -> tuple[bytes, bytes]:
    return spec.payload.encode(), spec.tenant.encode()


@given(specs=st.lists(requests, min_size=1, max_size=5), data=st.data(), while_running=st.booleans())
def test_order_and_repetition_of_requests_change_nothing(
    queue: SyncQueueExecutor, specs: list[JobRequest], data: st.DataObject, *, while_running: bool
) -> None:
    """I11: merging is commutative, associative and idempotent, in bytes and not in a server's locale."""
    other = data.draw(st.permutations(specs + data.draw(st.lists(st.sampled_from(specs), max_size=3))))
    found = merged(queue, specs, while_running=while_running)
    assert merged(queue, other, while_running=while_running) == found
    top = max(specs, key=lambda spec: (spec.version, spec.precedence, *texts(spec), spec.cost_bytes))
    assert found[:8] == (
        top.tenant.encode(),
        b"%d" % min(spec.band for spec in specs),
        b"%d" % min(spec.priority for spec in specs),
        b"%d" % top.cost_bytes,
        b"%d" % top.version,
        top.payload.encode(),
        b"%d" % max(spec.extent for spec in specs),
        b"%d" % max(spec.any_time or -spec.gives_way for spec in specs),
    )
    if while_running:
        assert found[9:] == (
            b"%d" % min(spec.debounce.quiet_ms for spec in specs),
            b"%d" % min(spec.debounce.max_delay_ms for spec in specs),
        )
    elif all(spec.debounce.quiet_ms and spec.debounce.max_delay_ms for spec in specs):
        least = min(ms for spec in specs for ms in (spec.debounce.quiet_ms, spec.debounce.max_delay_ms))
        assert found[9] == int(found[8]) + least
    else:
        assert found[9] is None


@settings(max_examples=examples(0.6))
@given(data=st.data())
def test_two_tenants_that_stay_ready_get_the_same_within_one_job_each(
    queue: SyncQueueExecutor, data: st.DataObject
) -> None:
    """Start-time fair queueing: |S_i - S_j| <= L_i + L_j over any time in which both are ready (Goyal et al. 1996).

    Tenants come and go: one that returns neither catches up on what it did not request nor waits for others to. Tables
    of one tenant are ordered by the ranks of their jobs instead.
    """
    emptied(queue)
    numbers = itertools.count()
    waiting: Counter[str] = Counter()
    costs = {flow: data.draw(st.integers(1, 8)) * MIB for flow in "abc"}
    largest = {flow: costs[flow] for flow in "abc"}
    since: dict[frozenset[str], Counter[str]] = {}
    for _ in range(data.draw(st.integers(10, 60))):
        flow = data.draw(st.sampled_from(["a", "b", "c", "", "", ""]))
        if flow:
            for _ in range(data.draw(st.integers(1, 4))):
                spec = JobRequest(JobKey("t", f"{next(numbers)}", "compact"), flow, Band.NORMAL, 5, costs[flow], 1)
                queue.run(commands.enqueue(QUEUE, spec))
                waiting[flow] += 1
        else:
            claim = commands.claim(QUEUE, worker="w", nonce=f"n{next(numbers)}", slots=1, lease_ms=60_000)
            for got in queue.run(claim):
                waiting[got.tenant] -= 1
                for pair, share in since.items():
                    if got.tenant in pair:
                        share[got.tenant] += got.cost_bytes
        ready = {one for one in waiting if waiting[one] > 0}
        for pair in map(frozenset, itertools.combinations("abc", 2)):
            if not pair <= ready:
                since.pop(pair, None)
                continue
            share = since.setdefault(pair, Counter())
            one, two = sorted(pair)
            assert abs(share[one] - share[two]) <= largest[one] + largest[two]


tables = st.from_regex(r"[A-Za-z0-9_.\-/]{1,20}", fullmatch=True)
kinds = st.from_regex(r"[A-Za-z0-9_\-]{1,20}", fullmatch=True)


@given(st.lists(st.builds(JobKey, table=tables, partition=st.text(), kind=kinds), unique=True))
def test_different_keys_have_different_ids(given_keys: list[JobKey]) -> None:
    assert len({job_id(key) for key in given_keys}) == len(given_keys)


@given(st.sampled_from([name for name, known in SETTINGS.items() if not known.is_set_by_decider]), st.data())
def test_what_is_shown_can_be_typed(name: str, data: st.DataObject) -> None:
    known = SETTINGS[name]
    value = data.draw(st.integers(known.low, known.high))
    stated = {
        "name": name,
        "value": value,
        "unit": known.unit.value,
        "default": known.default,
        "description": known.description,
    }
    ((short, spelled, *_),) = rows({"settings": [stated | {"minimum": known.low, "maximum": known.high}]})
    assert changes([f"{short}={spelled}"]) == {name: value}
