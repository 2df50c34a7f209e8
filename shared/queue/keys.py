"""Every key in Redis has a name here and nowhere else; `lua/include/keys.lua` is this file's twin in Lua.

All keys of one queue carry the same hash tag `{lw:<queue>}`, so that one script may touch them all in a cluster. No
script touches the other keys, at the end of this file: only deciders use them. A queue may have groups, named
`<queue>/<group>`: each has jobs, actors and settings of its own; what is known of tables is the queue's.
"""

import hashlib
from enum import StrEnum

from shared.queue.limits import require_queue
from shared.queue.model import Band, JobId, Scope

ROOT = "root"
"""The node of the tree whose children are the bands."""

NO_KEY = "lw:none"
"""A key that never exists: deleting it changes nothing, and is refused by a server that takes no writes."""


class KeyKind(StrEnum):
    """First letter of the keys of one kind; audits go through them."""

    JOB = "j"
    FLOW = "f"
    READY = "n"
    HELD = "h"
    ASIDE = "s"
    ASIDE_FLOW = "y"
    THROTTLED = "p"


class KeyType(StrEnum):
    """Type of a key, as Redis names it."""

    HASH = "hash"
    LIST = "list"
    SET = "set"
    STREAM = "stream"
    STRING = "string"
    ZSET = "zset"


def prefix(queue: str) -> str:
    """Return the beginning of every key of a queue, or of a group of one; it is KEYS[1] of every script."""
    require_queue(queue)
    name, _, group = queue.partition("/")
    return f"{{lw:{name}}}:g:{group}:" if group else f"{{lw:{name}}}:"


def of_tables(queue: str) -> str:
    """Return the beginning of the keys that all groups of a queue share."""
    return prefix(whole(queue))


def whole(queue: str) -> str:
    """Return the queue to which a group belongs; a queue is its own."""
    return queue.partition("/")[0]


def group_of(queue: str) -> str:
    """Return the name of a group within its queue; empty for the queue itself."""
    return queue.partition("/")[2]


def in_group(queue: str, group: str) -> str:
    """Return the name of a group of a queue; empty, or the queue's own name: the queue itself."""
    return queue if group in ("", queue) else f"{queue}/{group}"


def groups(queue: str) -> str:
    """Zset: the groups in which any table ever was, all with score 0."""
    return of_tables(queue) + "groups"


def all_keys(queue: str) -> str:
    """Pattern of SCAN for every key of a queue."""
    return prefix(queue) + "*"


def kind_and_name(queue: str, key: str) -> tuple[KeyKind, str] | None:
    """Split a key that SCAN returned; None for a key of no `KeyKind`."""
    kind, _, name = key.removeprefix(prefix(queue)).partition(":")
    return (KeyKind(kind), name) if kind in tuple(KeyKind) and name else None


def config(queue: str) -> str:
    """Hash: schema, settings, weights."""
    return prefix(queue) + "cfg"


def tables_config(queue: str) -> str:
    """Hash: weights and limits of tables, which stay when a table moves to another group; of a queue, its `config`."""
    return of_tables(queue) + "cfg"


def job(queue: str, job_id: JobId) -> str:
    """Hash: one job; `d_*` fields hold what arrived while it ran."""
    return f"{prefix(queue)}{KeyKind.JOB}:{job_id}"


def flow(queue: str, band: Band, tenant: str, table: str) -> str:
    """Zset: the queued jobs of one table in one band for one tenant, by rank: t0 + priority * aging_ms."""
    return f"{prefix(queue)}{KeyKind.FLOW}:{leaf_node(band, tenant)}|{table}"


def all_flows(queue: str) -> str:
    """Pattern of SCAN for every flow of a queue."""
    return f"{prefix(queue)}{KeyKind.FLOW}:*"


def flow_parts(queue: str, key: str) -> tuple[Band, str, str]:
    """Return band, tenant and table of a flow's key."""
    band, tenant, table = key.removeprefix(f"{prefix(queue)}{KeyKind.FLOW}:").split("|")
    return Band(int(band)), tenant, table


def leaf_node(band: Band, tenant: str) -> str:
    """Name of the node whose children are the tables of a tenant in a band."""
    return f"{int(band)}|{tenant}"


def ready(queue: str, node: str) -> str:
    """Zset: the children of a node that have something queued, by start tag; of a leaf, tables, by turn."""
    return f"{prefix(queue)}{KeyKind.READY}:{node}"


def idle(queue: str, node: str) -> str:
    """Zset: finish tags of children without work, kept while they lie ahead of the node's virtual time."""
    return f"{prefix(queue)}i:{node}"


def held(queue: str, node: str) -> str:
    """Sorted set of a node's children that wait without being served (paused, or at a limit), by start tag."""
    return f"{prefix(queue)}{KeyKind.HELD}:{node}"


def aside_children(queue: str, node: str) -> str:
    """Sorted set of a node's children whose jobs all wait for other actors, by start tag."""
    return f"{prefix(queue)}{KeyKind.ASIDE}:{node}"


def virtual_times(queue: str) -> str:
    """Hash: virtual time of each busy node, the row of strict claims (`strict_run`), and the last `token`."""
    return prefix(queue) + "v"


def queued(queue: str) -> str:
    """Zset: all queued jobs by arrival, for depth, oldest wait and listing; nothing is served from it."""
    return prefix(queue) + "queued"


def leases(queue: str) -> str:
    """Zset: running jobs by lease deadline."""
    return prefix(queue) + "lease"


def delayed(queue: str) -> str:
    """Zset: delayed jobs by the time at which they become ready."""
    return prefix(queue) + "delay"


def quarantined(queue: str) -> str:
    """Zset: quarantined jobs by the time of their next single try."""
    return prefix(queue) + "dead"


def in_flight(queue: str) -> str:
    """Hash: running jobs per table (`table|<id>`) and tenant (`tenant|<name>`); zero is absent."""
    return prefix(queue) + "infl"


def throttled(queue: str, scope: Scope, name: str) -> str:
    """Zset: the flows of a table (`band|tenant`), or bands of a tenant, that are out of the tree while at a limit."""
    return f"{prefix(queue)}{KeyKind.THROTTLED}:{scope}|{name}"


def reply(queue: str, worker: str, nonce: str) -> str:
    """Return the key of a remembered reply (string with TTL): a repeated call is answered without being repeated."""
    return f"{of_tables(queue)}w:{worker}|{nonce}"


def aside(queue: str) -> str:
    """Set: abilities (`format/kind`) that jobs wait for, which those who claimed did not have."""
    return prefix(queue) + "aside"


def aside_jobs(queue: str, ability: str) -> str:
    """Zset: jobs that wait for an actor with this ability, by the time at which they were set aside."""
    return f"{prefix(queue)}x:{ability}"


def aside_flow(queue: str, band: Band, tenant: str, table: str) -> str:
    """Zset: those jobs of a flow that were set aside, by the time at which they were."""
    return f"{prefix(queue)}{KeyKind.ASIDE_FLOW}:{leaf_node(band, tenant)}|{table}"


def changed_tables(queue: str) -> str:
    """Zset: tables by the time at which their state moved last, so that a list of all tables rereads only those."""
    return of_tables(queue) + "moved"


def table_state(queue: str, table: str) -> str:
    """Hash: how far a table's log has been read; `version` is compared before every move."""
    return f"{of_tables(queue)}cur:{table}"


def partitions(queue: str, table: str) -> str:
    """Hash: partition key to the partition's opaque state."""
    return f"{of_tables(queue)}partitions:{table}"


def refusals(queue: str, table: str) -> str:
    """Hash: partition key to what is remembered of its refused files, opaque text."""
    return f"{of_tables(queue)}refusals:{table}"


def refusing_tables(queue: str) -> str:
    """Hash: table to the number of its partitions of which refusals are remembered; zero is absent."""
    return of_tables(queue) + "refusing"


def work_windows(queue: str) -> str:
    """Hash: table to its work window, as `HeldWork.in_queue` writes it; none is absent."""
    return of_tables(queue) + "windows"


def budgets(queue: str) -> str:
    """Hash: scope to its budget, as `encode_budgets` writes it, and `prices`; none is absent.

    Also of a table the limit of its write amplification, and what is exempt from its limits (see budget.lua).
    """
    return of_tables(queue) + "budgets"


def spent(queue: str) -> str:
    """Hash: scope with a budget to what its jobs have used, and may use while they run, in this day and month."""
    return of_tables(queue) + "spent"


def budget_waits(queue: str) -> str:
    """Zset: tables of which a job waits for a budget, by the time at which it asks again."""
    return of_tables(queue) + "budgetwaits"


def rates(queue: str, table: str) -> str:
    """Hash: kind and extent of jobs to what they used per byte on a table; `rewritten`: bytes by day."""
    return f"{of_tables(queue)}rates:{table}"


def ledger(queue: str, table: str) -> str:
    """Capped stream: decisions and what became of them."""
    return f"{of_tables(queue)}led:{table}"


def measures(queue: str, table: str) -> str:
    """Hash: sums of what the newest runs of a table measured."""
    return f"{of_tables(queue)}meas:{table}"


def timers(queue: str, table: str) -> str:
    """Zset: the timers of one table by the time at which they fire."""
    return f"{of_tables(queue)}due:{table}"


def due_tables(queue: str) -> str:
    """Zset: tables by the time at which their first timer fires."""
    return of_tables(queue) + "due"


def staged_partitions(queue: str, name: str) -> str:
    """Hash with a TTL: the partitions of a rebuild that is too large for one call, until they replace the old ones."""
    return f"{of_tables(queue)}new:{name}"


def staged_timers(queue: str, name: str) -> str:
    """Zset with a TTL: the timers that belong to `staged_partitions`."""
    return f"{of_tables(queue)}newdue:{name}"


def archive_progress(queue: str) -> str:
    """Hash: number of the newest batch of ledger records that was archived, and the `pending` one."""
    return of_tables(queue) + "arch"


def marks(queue: str, table: str) -> str:
    """Capped stream: pauses, quarantined jobs and changed properties of a table, for its history."""
    return f"{of_tables(queue)}marks:{table}"


def archived_up_to(queue: str) -> str:
    """Hash: table to the newest record of its ledger that is in the archive."""
    return of_tables(queue) + "arch:at"


def counters(queue: str, table: str | None = None) -> str:
    """Hash: counters of one table, or of the whole queue."""
    return of_tables(queue) + ("count" if table is None else f"count:{table}")


def runs(queue: str) -> str:
    """Capped stream: finished runs."""
    return of_tables(queue) + "hist"


def events(queue: str) -> str:
    """Capped stream: what people want to know of and no run reports (quarantined, preempted, cancelled)."""
    return of_tables(queue) + "ev"


def actors(queue: str) -> str:
    """Set: names of registered actors; those without a hash have expired."""
    return prefix(queue) + "actors"


def actor(queue: str, name: str) -> str:
    """Hash with TTL: what one actor reports with its heartbeat."""
    return f"{prefix(queue)}a:{name}"


def drain(queue: str, name: str) -> str:
    """Return the key of the request that an actor take no more jobs (string with TTL)."""
    return f"{prefix(queue)}dr:{name}"


TABLES = "lw:tables"
"""Hash: table id to the registered table."""

REDISCOVERABLE = "lw:rediscoverable"
"""Set: the removed tables that no person removed, so that discovery registers them again."""

REMOVED_TABLES = "lw:removed"
"""Hash: table id to the time at which the table was unregistered, for a month: its registration elsewhere is older."""

TABLE_NAMES = "lw:names"
"""Hash: table name to table id; it makes names unique."""

TABLE_ORDER = "lw:order"
"""Zset: table names in their order, for paging."""

TABLES_REVISION = "lw:revision"
"""Number that grows with every change of the registered tables."""

MERGED_REGISTRY = "lw:merged"
"""String: the run id of the server process in which the registry was last merged with the saved one."""

TABLES_FILE = "lw:tables-file"
"""String: the digest of the tables file that was applied last."""


def registry_merge(token: str) -> str:
    """Return the key of a merge that has begun (string with TTL): it vanishes if the server is emptied."""
    return f"{MERGED_REGISTRY}:{token}"


REFUSED_TABLES = "lw:refused"
"""Hash: table id to the reason why it is not rewritten."""

ADVICE = "lw:advice"
"""Hash: table id to the newest advice for it."""

ANALYZED_TABLES = "lw:analyzed"
"""Hash: table id to when it was analyzed for advice, and at which version."""

DISMISSED_ADVICE = "lw:dismissed"
"""Hash: table id to the ids of the changes that a person dismissed."""

ADVICE_LEASE = "lw:advice-lease"
"""String with TTL: the decider that analyzes tables."""

REJECTED_EVENTS = "lw:rejected-events"
"""List: the newest messages of event queues that could not be used."""

DISCOVERY = "lw:discovery"
"""Hash: root to the progress of its scan."""


def discovery_lease(root: str) -> str:
    """Return the key of the lease of one root's scan (string with TTL: its holder)."""
    return f"{DISCOVERY}:{hashlib.blake2b(root.encode(), digest_size=8).hexdigest()}"


def manual_run(table: str) -> str:
    """Return the key of the last run that a table's properties requested (string)."""
    return f"lw:manual:{table}"


def reads(table: str) -> str:
    """Return the key of a table's reported reads by day, and when the first was reported (hash with TTL)."""
    return f"lw:reads:{table}"


def read_filters(table: str) -> str:
    """Return the key of the filters of a table's reported reads, by how often each was used (zset with TTL)."""
    return f"lw:read-filters:{table}"


def owned_queue_limits(queue: str) -> str:
    """Hash: table to its limits in this queue (`limit weight window`) that a property may have set."""
    return f"lw:queue-limits:{queue}"


def administered(queue: str) -> str:
    """Hash: field of the queue's configuration to the time at which an operator set it last."""
    return f"lw:administered:{queue}"


def policy_defaults(queue: str) -> str:
    """Return the key of the policy defaults that all deciders of a queue share (string)."""
    return f"lw:defaults:{queue}"


def urgent_jobs(tenant: str, hour: int) -> str:
    """Return the key of the number of urgent jobs that a tenant's requests had in an hour (string with TTL)."""
    return f"lw:urgent:{tenant}:{hour}"


def history(queue: str, step_ms: int, table: str = "") -> str:
    """Return the key of the samples of a table, or of all together, that are so many milliseconds apart (stream)."""
    return f"lw:history:{queue}:{step_ms}" + (f":{table}" if table else "")


def sampled_changes(queue: str) -> str:
    """Return the key of the time of the newest change of a table that samples of tables include (string)."""
    return f"lw:sampled-changes:{queue}"


def newest_sample(queue: str) -> str:
    """Return the key of the newest sample of all tables (string with TTL)."""
    return f"lw:newest-sample:{queue}"


def history_lease(queue: str) -> str:
    """Return the key of the name of the decider that takes samples (string with TTL)."""
    return f"lw:history-lease:{queue}"


def shared_types(queue: str) -> dict[str, KeyType]:
    """Return the types of the keys that all tables of a queue share: one of another type stops everything."""
    hashes = (TABLES, TABLE_NAMES, REMOVED_TABLES, REFUSED_TABLES, ADVICE, ANALYZED_TABLES, DISMISSED_ADVICE, DISCOVERY)
    queue_hashes = (config, virtual_times, in_flight, counters, owned_queue_limits, administered)
    own_hashes = (*queue_hashes, work_windows, budgets, spent)
    own_zsets = (queued, leases, delayed, quarantined, changed_tables, due_tables, budget_waits)
    return {
        **dict.fromkeys((*hashes, *(key(queue) for key in own_hashes)), KeyType.HASH),
        **dict.fromkeys((TABLE_ORDER, *(key(queue) for key in own_zsets)), KeyType.ZSET),
        **dict.fromkeys((TABLES_REVISION, MERGED_REGISTRY, TABLES_FILE, policy_defaults(queue)), KeyType.STRING),
        **dict.fromkeys((aside(queue), actors(queue)), KeyType.SET),
        **dict.fromkeys((runs(queue), events(queue)), KeyType.STREAM),
        REJECTED_EVENTS: KeyType.LIST,
    }


def table_types(queue: str, table: str) -> dict[str, KeyType]:
    """Return the types of the keys of one table."""
    return {
        **{key(queue, table): KeyType.HASH for key in (table_state, partitions, measures, rates, counters)},
        timers(queue, table): KeyType.ZSET,
        **{key(queue, table): KeyType.STREAM for key in (ledger, marks)},
        manual_run(table): KeyType.STRING,
        reads(table): KeyType.HASH,
        read_filters(table): KeyType.ZSET,
    }
