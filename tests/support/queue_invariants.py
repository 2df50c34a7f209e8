"""The laws of design section 6 that can be read off the store, each with its number."""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable

from shared.queue.model import Band, Debounce, JobState
from shared.queue.settings import QueueSettings
from tests.support.queue_model import Job, QueueModel, StoredRequest
from tests.support.queue_state import State

LASTING = ("cfg", "v", "ev", "hist", "count", "cur:", "moved", "partitions:", "led:", "marks:")
"""What a drained queue may keep; `v` has the last token, the row of strict claims and the last search for due jobs."""

RUN_FIELDS = {"worker", "started", "progress", "stop", "slot"}

BELOW = 2**53

Parked = dict[str, dict[str, dict[str, float]]]
"""By level and name, the bands or leaves that are parked."""


def check(state: State, model: QueueModel) -> None:
    one_index_each(state, model)
    jobs_as_in_the_model(state, model)
    in_flight_is_leases(state)
    unweighted = {*map(str, range(model.settings.strict_bands)), str(int(Band.BACKGROUND))}
    every_queued_job_is_reachable(state, unweighted | model.held_back)
    turns_follow_ranks(state)
    numbers_stay_exact(state)
    if not model.jobs:
        drained_queue_is_empty(state, model.settings)


def one_index_each(state: State, model: QueueModel) -> None:
    """I1, I2: a job is in exactly the index that its state names, once."""
    flows = Counter(job_id for flow in state.named("f:").values() for job_id in flow)
    assert all(count == 1 for count in flows.values()), f"in two flows: {flows}"
    assert set(flows) == set(state.zset("queued"))
    found = {
        JobState.QUEUED: set(flows),
        JobState.DELAYED: set(state.zset("delay")),
        JobState.LEASED: set(state.zset("lease")),
        JobState.QUARANTINED: set(state.zset("dead")),
    }
    assert found == {one: set(model.of(one)) for one in JobState}
    assert {job_id: job["state"] for job_id, job in state.jobs.items()} == {
        job_id: job.state.value for job_id, job in model.jobs.items()
    }


def jobs_as_in_the_model(state: State, model: QueueModel) -> None:
    """I5, I11, I13: what was merged, what is pending, attempts and times are exactly what the model says."""
    times = {**state.zset("delay"), **state.zset("lease"), **state.zset("dead")}
    for job_id, job in model.jobs.items():
        stored = state.jobs[job_id]
        assert _request(stored, "") == job.request, job_id
        assert (_request(stored, "d_") if "d_version" in stored else None) == job.pending, job_id
        if job.pending is not None:
            assert Debounce(int(stored["d_quiet"]), int(stored["d_max"])) == job.pending_delay, job_id
        assert int(stored["attempts"]) == job.attempts, job_id
        assert int(stored.get("crashes", 0)) == job.deaths, job_id
        assert stored.get("token") == (None if job.token is None else str(job.token)), job_id
        assert times.get(job_id) == job.at_ms, job_id
        flow = f"{job.request.band}|{job.request.tenant}|{job.key.table}"
        if job.state is JobState.QUEUED:
            assert state.named("f:")[flow][job_id] == _aged(job, model.settings), job_id
            assert state.zset("queued")[job_id] == job.request.t0_ms
        run_fields = {name for name in stored if name.startswith("d_")} | RUN_FIELDS & set(stored)
        if job.state is not JobState.LEASED:
            assert not run_fields, f"{job_id} kept {run_fields} of a run that is over"


def in_flight_is_leases(state: State) -> None:
    """I6: in-flight counts are the leases, and so are the sets of running jobs."""
    leased = [state.jobs[job_id] for job_id in state.zset("lease")]
    counts = Counter(name for job in leased for name in (f"table|{job['table']}", f"tenant|{job['tenant']}"))
    assert {name: int(count) for name, count in state.hash("infl").items()} == counts


def every_queued_job_is_reachable(state: State, may_be_behind: Container[str] = (), *, lag: int = 0) -> None:
    """I7: the tree holds the paths to the non-empty flows and nothing else; no tag is behind its node's time.

    Who is parked is held by its node, and so is a node that has nothing but held children.

    `may_be_behind`: strict bands and the background, which are served by rank, and bands that were paused and not
    served since. Keeping their tags would mean to move every paused band with every claim; instead, a band that is
    behind is charged from the root's time when it is served, so that it gains one job's start and nothing of what it
    missed.

    `lag`: how far any tag may be behind, where jobs are set aside for other actors.
    """
    parked = {"table": state.named("p:table|"), "tenant": state.named("p:tenant|")}
    expected, held = expected_tree(state.named("f:"), parked, aside_flows(state))
    only_who_must_be_is_parked(state, parked)
    ready, waiting = state.named("n:"), state.named("h:")
    for node, children in state.named("s:").items():
        assert not set(waiting.get(node, {})) & set(children), f"{node} has children that are held and aside at once"
        waiting[node] = {**waiting.get(node, {}), **children}
    assert {node: set(children) for node, children in ready.items()} == expected
    assert {node: set(children) for node, children in waiting.items()} == held
    virtual = state.hash("v")
    for node, children in ready.items():
        idle = state.zset(f"i:{node}")
        assert not set(idle) & set(children), f"{node} has children that are ready and idle at once"
        for child, tag in children.items():
            in_time = tag >= float(virtual.get(node, 0)) - lag or (node == "root" and child in may_be_behind)
            assert in_time, f"{node}: the tag of {child} is behind its time"
    busy = {*ready, *waiting}
    for node in busy:
        once = [*ready.get(node, {}), *waiting.get(node, {}), *state.zset(f"i:{node}")]
        assert len(once) == len(set(once)), f"{node} has a child in two places: {once}"
    assert set(state.named("i:")) <= busy, "an empty node must forget its idle children"
    assert set(virtual) - {"token", "strict_run", "polled_ms"} <= busy, "an empty node must forget its time"


def turns_follow_ranks(state: State) -> None:
    """I10: the turn of a table with queued jobs is the rank of its first one, or later by what it owes.

    Tables have no start tags, so leaves have neither a virtual time nor idle children.
    """
    ready, held = state.named("n:"), state.named("h:")
    for flow, ranks in state.named("f:").items():
        leaf, _, table = flow.rpartition("|")
        turn = {**held.get(leaf, {}), **ready.get(leaf, {})}[table]
        assert turn >= min(ranks.values()), f"{flow}: the turn is before the rank of its first job"
    assert not [node for node in (*state.hash("v"), *state.named("i:")) if "|" in node], "a leaf has tags of its own"


def aside_flows(state: State) -> set[str]:
    """Return the flows of which jobs wait for other actors; their index is that of the jobs themselves."""
    found = {job_id: flow for flow, jobs in state.named("y:").items() for job_id in jobs}
    aside = {job_id: job for job_id, job in state.jobs.items() if job["state"] == "delayed" and "ability" in job}
    assert found == {job_id: f"{job['band']}|{job['tenant']}|{job['table']}" for job_id, job in aside.items()}
    return set(found.values())


def expected_tree(
    flows: Collection[str], parked: Parked, aside: Iterable[str] = ()
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the ready children of each node, and those that wait, from the flows and from who is parked.

    `aside`: the flows of which jobs wait for other actors.
    """
    ready: dict[str, set[str]] = defaultdict(set)
    held: dict[str, set[str]] = defaultdict(set)
    for flow in {*flows, *aside}:
        band, tenant, table = flow.split("|")
        leaf = f"{band}|{tenant}"
        (held if flow not in flows or leaf in parked["table"].get(table, {}) else ready)[leaf].add(table)
    for leaf in {*ready, *held}:
        band, tenant = leaf.split("|")
        is_held = leaf not in ready or band in parked["tenant"].get(tenant, {})
        (held if is_held else ready)[band].add(tenant)
    for band in {node for node in (*ready, *held) if "|" not in node}:
        (ready if band in ready else held)["root"].add(band)
    return dict(ready), dict(held)


def only_who_must_be_is_parked(state: State, parked: Parked) -> None:
    """I7: who is out of the tree is at a limit now, and has something to come back with."""
    for level, names in parked.items():
        for name in names:
            limit = state.hash("cfg").get(f"limit:{level}|{name}")
            assert limit is not None, f"{level} {name} is parked without a limit"
            in_flight = int(state.hash("infl").get(f"{level}|{name}", 0))
            assert limit.startswith("!") or in_flight >= int(limit), f"{level} {name} is parked below its limit"
    for table, leaves in parked["table"].items():
        assert all(f"{leaf}|{table}" in state.named("f:") for leaf in leaves)
    for tenant, bands in parked["tenant"].items():
        assert all(any(flow.startswith(f"{band}|{tenant}|") for flow in state.named("f:")) for band in bands)


def numbers_stay_exact(state: State) -> None:
    """I14: every tag, time and token is an integer below 2^53."""
    for name, zset in state.zsets.items():
        assert all(score.is_integer() and 0 <= score < BELOW for score in zset.values()), name
    assert all(0 <= int(value) < BELOW for value in state.hash("v").values())


def drained_queue_is_empty(state: State, settings: QueueSettings) -> None:
    """I15: nothing is left but settings, cursors, streams, counters, and what outlives jobs in `v`.

    The row of strict claims outlives them on purpose: a merge that moves the only job empties the tree for a moment;
    forgetting the row there let strict bands take two rows in a row. What is left is at most a whole row, and lets a
    weighted band in sooner, never later.
    """
    assert int(state.hash("v").get("strict_run", 0)) <= settings.strict_in_row
    kept = {name for name in state.without_ttl if not name.startswith(LASTING)}
    assert not kept, f"left behind by a drained queue: {kept}"
    assert set(state.hash("v")) <= {"token", "strict_run", "polled_ms"}


def _aged(job: Job, settings: QueueSettings) -> int:
    return job.request.t0_ms + job.request.priority * settings.aging_ms


def _request(stored: dict[str, str], mark: str) -> StoredRequest:
    return StoredRequest(
        stored[f"{mark}tenant"],
        int(stored[f"{mark}band"]),
        int(stored[f"{mark}prio"]),
        int(stored[f"{mark}cost"]),
        int(stored[f"{mark}version"]),
        stored[f"{mark}payload"],
        int(stored[f"{mark}first_ms"]),
        int(stored.get(f"{mark}precedence", 0)),
        int(stored.get(f"{mark}extent", 0)),
        stored.get(f"{mark}any_time") == "1",
    )
