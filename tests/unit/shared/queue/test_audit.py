"""An audit goes through every key that SCAN returned, each by the call that is for its kind."""

from shared.queue import audit, keys
from shared.queue.audit import AuditedKey, parse_key
from shared.queue.lua_library import ScriptName
from shared.queue.model import Band, JobId, JobState, Scope

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
