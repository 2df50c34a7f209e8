"""Names: every key in one hash slot and one file, every id computed alike, and an audit that goes through all."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from inspect import isfunction, signature
from pathlib import Path

import pytest

from shared.errors import InvalidInput
from shared.queue import audit, keys
from shared.queue.audit import AuditedKey, parse_key
from shared.queue.keys import KeyKind
from shared.queue.limits import MAX_GROUPS
from shared.queue.lua_library import ScriptName, source
from shared.queue.model import Band, JobId, JobKey, JobRequest, JobState, Scope, job_id
from shared.queue.records import QueueDepth, sum_of_depths
from tests.support.source_nodes import Nodes, nodes_in, nodes_of


def test_a_scan_for_flows_finds_those_of_every_band_and_tenant_and_no_other_key() -> None:
    pattern = keys.all_flows("q")
    assert all(fnmatchcase(keys.flow("q", band, "a tenant", "t"), pattern) for band in Band)
    assert not fnmatchcase(keys.flow("other", Band.NORMAL, "a", "t"), pattern)
    assert not fnmatchcase(keys.job("q", "j"), pattern)


def test_an_id_is_readable_and_the_same_for_ever() -> None:
    """Ids are stored and written into commits, so that the recipe must never change."""
    assert job_id(JobKey("sales-1f2e", '{"day":"2026-01-01"}', "compact")) == "sales-1f2e.376394dcada8a309.compact"


NO_KEYS = {"prefix", "of_tables", "whole", "group_of", "in_group", "all_keys", "all_flows", "leaf_node"}
OF_DECIDERS = {
    *("owned_queue_limits", "administered", "policy_defaults", "history", "newest_sample", "history_lease"),
    "sampled_changes",
}


def built(name: str, queue: str) -> str:
    """Return what a function of the keys makes of a queue and arguments of its types."""
    build = getattr(keys, name)
    kinds = list(build.__annotations__.values())[1:-1]
    return str(build(queue, *({Band: Band.HIGH, Scope: Scope.TABLE, int: 1}.get(kind, "x") for kind in kinds)))


def test_all_keys_of_a_queue_share_one_hash_slot() -> None:
    of_queues = {
        name
        for name, build in vars(keys).items()
        if isfunction(build) and "queue" in signature(build).parameters and build.__annotations__["return"] is str
    }
    made = {name: built(name, "q/etl") for name in of_queues - NO_KEYS}
    assert len(set(made.values())) == len(made) > 40
    assert {name for name, key in made.items() if not key.startswith("{lw:q}:")} == OF_DECIDERS


def test_a_group_has_jobs_of_its_own_and_shares_what_is_known_of_tables() -> None:
    assert (keys.in_group("q", "etl"), keys.in_group("q", ""), keys.in_group("q", "q")) == ("q/etl", "q", "q")
    assert (keys.whole("q/etl"), keys.group_of("q/etl"), keys.group_of("q")) == ("q", "etl", "")
    assert keys.job("q/etl", JobId("x")) == "{lw:q}:g:etl:j:x"
    assert keys.kind_and_name("q", keys.job("q/etl", JobId("x"))) is None, "an audit of the queue leaves groups alone"
    assert keys.kind_and_name("q/etl", keys.job("q/etl", JobId("x"))) == (KeyKind.JOB, "x")
    for shared in (
        keys.runs,
        keys.events,
        keys.counters,
        keys.due_tables,
        keys.budgets,
        keys.tables_config,
        keys.groups,
    ):
        assert shared("q/etl") == shared("q")
    assert keys.table_state("q/etl", "t") == keys.table_state("q", "t")
    assert keys.config("q/etl") != keys.config("q") == keys.tables_config("q")


def test_lua_and_python_know_as_many_groups() -> None:
    found = re.search(r"local MAX_GROUPS = (\d+)", source("include/group"))
    assert found is not None
    assert int(found[1]) == MAX_GROUPS


def test_the_jobs_of_groups_are_added_up() -> None:
    none = dict.fromkeys(JobState, 0)
    depths = [QueueDepth(5, {**none, JobState.QUEUED: 1}, 3), QueueDepth(6, {**none, JobState.QUEUED: 2}, None)]
    assert sum_of_depths(depths) == QueueDepth(6, {**none, JobState.QUEUED: 3}, 3)
    assert sum_of_depths(depths[1:]) == depths[1]


def test_lua_and_python_call_the_same_key_by_the_same_name() -> None:
    """`QUARANTINED` and `table_state_key(...)` in Lua are `keys.quarantined` and `keys.table_state` in Python.

    Both files are read for their literals; a key that only Lua knows is a mistake.
    """
    text = source("include/keys")
    constants = {
        name: literal
        for line in re.findall(r"^  ([A-Z_, ]+ = [PS] \.\. .*)$", text, re.MULTILINE)
        for name, literal in zip(
            line.split(" = ")[0].split(", "), re.findall(r"[PS] \.\. '([^']+)'", line), strict=True
        )
    }
    functions = dict(re.findall(r"^local function (\w+)_key\(.*?[PS] \.\. '([^']+)'", text, re.MULTILINE))
    functions["counters"] = "count"
    assert len(constants) == 19
    assert len(functions) == len(re.findall(r"^local function \w+_key\(", text, re.MULTILINE))
    named = constants | functions
    assert {*re.findall(r"[PS] \.\. '([^']+)'", text), "count"} == {"g:", *named.values()}
    for name, literal in named.items():
        assert built(name.lower(), "q").startswith("{lw:q}:" + literal), name


def test_a_key_that_scan_returns_is_read_as_it_was_made() -> None:
    flow = keys.flow("q", Band.LOW, "tenant", "table")
    assert keys.flow_parts("q", flow) == (Band.LOW, "tenant", "table")
    assert keys.kind_and_name("q", flow) == (KeyKind.FLOW, f"{int(Band.LOW)}|tenant|table")
    assert keys.kind_and_name("q", keys.job("q", JobId("a:b"))) == (KeyKind.JOB, "a:b")
    assert keys.kind_and_name("q", keys.throttled("q", Scope.TABLE, "t")) == (KeyKind.THROTTLED, "table|t")
    for other in (keys.config("q"), keys.job("q", JobId("")), keys.ledger("q", "t"), keys.table_state("q", "t")):
        assert keys.kind_and_name("q", other) is None


@pytest.mark.parametrize("bad", ["", "a b", "a|b", "{a}", "a\n", "x" * 301])
def test_names_that_would_break_a_key_are_refused(bad: str) -> None:
    with pytest.raises(InvalidInput, match="table"):
        JobKey(bad, "{}", "compact")
    with pytest.raises(InvalidInput, match="kind"):
        JobKey("t", "{}", bad or "a.b")
    with pytest.raises(InvalidInput, match="tenant"):
        JobRequest(JobKey("t", "{}", "compact"), bad, Band.NORMAL, 5, 0, 0)


@pytest.mark.parametrize("bad", ["", "A", "a:b", "{a}", "a" * 41, "a/", "/a", "a/b/c", "a/B"])
def test_queue_names_are_short_lower_case_words(bad: str) -> None:
    with pytest.raises(InvalidInput, match="queue"):
        keys.prefix(bad)


def test_keys_of_deciders_alone_are_of_one_table_queue_or_tenant_each_and_lie_outside_of_every_queue() -> None:
    made = [
        *(
            build(name)
            for build in (keys.owned_queue_limits, keys.administered, keys.policy_defaults)
            for name in ("q", "r")
        ),
        *(build(table) for build in (keys.manual_run, keys.reads, keys.read_filters) for table in ("t", "u")),
        *(keys.discovery_lease(root) for root in ("s3://a", "s3://b")),
        *(keys.history(name, step_ms) for name in ("q", "r") for step_ms in (1, 2)),
        *(keys.urgent_jobs(tenant, hour) for tenant in ("a", "b") for hour in (1, 2)),
    ]
    assert len(set(made)) == len(made)
    assert all(key.startswith("lw:") for key in made)


def test_a_merge_of_the_registry_is_known_by_its_token() -> None:
    assert keys.registry_merge("a") != keys.registry_merge("b")
    assert keys.registry_merge("a").startswith(keys.MERGED_REGISTRY)


def test_a_key_is_checked_for_the_type_that_its_description_states() -> None:
    """A key of another type stops a table, or everything."""
    shared, of_table = keys.shared_types("q"), keys.table_types("q", "t")
    types = shared | of_table
    assert len(types) == len(shared) + len(of_table), "a key is of one table, or of all"
    names, stated = {"queue": "q", "table": "t"}, dict[str, str]()
    for build in filter(isfunction, vars(keys).values()):
        asked = signature(build).parameters
        kind = re.search(r"\b(hash|list|set|stream|string|zset)\b", (build.__doc__ or "").lower())
        if kind and build.__annotations__["return"] is str and asked.keys() <= names.keys():
            stated[build(**{name: names[name] for name in asked})] = kind[1]
    built = types.keys() & stated.keys()
    assert len(built) > 20, "the descriptions are read"
    assert {key: str(types[key]) for key in built} == {key: stated[key] for key in built}


ROOT = Path(__file__).resolve().parents[4]
KEYS = Path("shared/queue/keys.py")
ROOMS = ("shared", "decider", "actor", "services")

COMMANDS = re.compile(
    r"delete|exists|p?expire|p?ttl|type|unlink|watch|rename|scan_iter"
    r"|get|set|setex|psetex|h[a-z]+|s(?:add|members|rem|ismember)|x[a-z]+|z[a-z]+"
)
"""Commands whose first argument is a key, or a pattern of keys."""

CONNECTIONS = ("redis", "pipe", "pipeline", "client")
"""How connections and pipelines are called."""


def offences(path: Path, nodes: Nodes) -> Iterator[str]:
    """Yield what spells a key, or the beginning of one."""
    for node in nodes[ast.Constant]:
        if isinstance(node.value, str) and "lw:" in node.value:
            yield f"{path}:{node.lineno}: the text {node.value[:60]!r}"
    for node in nodes[ast.Call]:
        if isinstance(node.func, ast.Attribute) and node.args and COMMANDS.fullmatch(node.func.attr):
            first = node.args[0]
            is_text = isinstance(first, ast.JoinedStr | ast.BinOp) or (
                isinstance(first, ast.Constant) and isinstance(first.value, str)
            )
            if not is_text or ast.unparse(first).lstrip("f'\"").startswith("/"):
                continue  # A path of a URL is no key.
            connection = ast.unparse(node.func.value).rsplit(".", 1)[-1].lstrip("_")
            if connection in CONNECTIONS:
                yield f"{path}:{node.lineno}: {ast.unparse(node)[:80]}"
    for node in nodes[ast.Attribute]:
        if node.attr == "prefix" and ast.unparse(node) == "keys.prefix" and path.parts[0] != "shared":
            yield f"{path}:{node.lineno}: the prefix of all keys"


def test_no_other_module_spells_a_key() -> None:
    paths = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    assert len(paths) > 200
    found = [
        offence
        for path in paths
        if path.relative_to(ROOT) != KEYS
        for offence in offences(path.relative_to(ROOT), nodes_in(path))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        'KEY = "lw:tables"',
        'f"{{lw:{queue}}}:cfg"',
        'self._redis.hget("tables", one)',
        'pipe.set(f"{name}:lease", 1)',
        'queue.redis.zrem(keys.config(name) + ":x", 1)',
        'start = keys.prefix(name) + "f:"',
    ],
)
def test_the_search_finds_what_it_is_for(source: str) -> None:
    assert list(offences(Path("decider/store/some.py"), nodes_of(source)))


FOUND = [
    keys.flow("q", Band.LOW, "tenant", "table"),
    keys.ready("q", keys.ROOT),
    keys.held("q", keys.leaf_node(Band.HIGH, "tenant")),
    keys.aside_children("q", keys.ROOT),
    keys.aside_flow("q", Band.LOW, "tenant", "table"),
    keys.throttled("q", Scope.TABLE, "t"),
    *(keys.job("q", JobId(f"j{number}")) for number in range(audit.PAGE + 1)),
    keys.config("q"),
]
AUDITED = [one for key in FOUND if (one := parse_key("q", key.encode())) is not None]


def test_every_key_but_those_that_audits_do_not_read_is_audited() -> None:
    assert len(AUDITED) == len(FOUND) - 1
    assert AUDITED[0] == AuditedKey(keys.KeyKind.FLOW, "3|tenant|table")


def test_jobs_come_first_a_page_per_call_then_flows_and_nodes() -> None:
    calls = list(audit.steps("q", AUDITED))
    assert [(call.script, call.args[-1]) for call in calls[:2]] == [
        (ScriptName.AUDIT_JOBS, f"j{audit.PAGE - 1}"), (ScriptName.AUDIT_JOBS, f"j{audit.PAGE}"),
    ]  # fmt: skip
    assert [(call.script, call.args) for call in calls[2:]] == [
        (ScriptName.AUDIT_FLOW, ("3", "tenant", "table", "queued", 0)),
        (ScriptName.AUDIT_NODE, ("root", "ready", 0)),
        (ScriptName.AUDIT_NODE, ("1|tenant", "held", 0)),
        (ScriptName.AUDIT_NODE, ("root", "aside", 0)),
        (ScriptName.AUDIT_FLOW, ("3", "tenant", "table", "aside", 0)),
    ]


def test_what_depends_on_the_other_keys_comes_last() -> None:
    calls = list(audit.final_steps("q", AUDITED))
    assert [call.script for call in calls] == [
        *[ScriptName.AUDIT_INDEX] * len(JobState), ScriptName.AUDIT_IN_FLIGHT, ScriptName.AUDIT_THROTTLED,
    ]  # fmt: skip
    assert calls[-1].args == ("table", "t")


def test_a_page_is_continued_behind_what_was_kept_of_it_and_a_short_one_was_the_last() -> None:
    call = audit.flow("q", "3|tenant|table", "queued", 100)
    following = audit.next_page(call, audit.PageAudit(kept=audit.PAGE, repaired=2))
    assert following is not None
    assert (following.script, following.args) == (
        ScriptName.AUDIT_FLOW,
        ("3", "tenant", "table", "queued", 100 + audit.PAGE),
    )
    assert following.decode([b"7", b"1"]) == audit.PageAudit(7, 1)
    assert audit.next_page(call, audit.PageAudit(kept=audit.PAGE - 1, repaired=0)) is None
