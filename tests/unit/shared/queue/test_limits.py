"""What cannot be sent is refused before it is sent, with the name of the culprit."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.queue import commands, limits, queries
from shared.queue.command import LOST_REPLY, Command, WrongKey, error_of_reply, unreachable
from shared.queue.lua_library import ScriptName
from shared.queue.model import Band, Debounce, HeartbeatEntry, JobKey, JobRequest, JobState, RunResult, Share, Token

KEY = JobKey("t", "{}", "compact")
SPEC = JobRequest(KEY, "default", Band.NORMAL, 5, 1, 1)


def finish(**changed: Any) -> Command[Any]:
    values = {
        "worker": "w",
        "nonce": "n",
        "id": SPEC.id,
        "token": Token(1),
        "run_result": RunResult.DONE,
        "cost_bytes": 1,
    }
    return commands.finish("q", **{**values, "seen_version": 1, **changed})


def ingest(**changed: Any) -> Command[Any]:
    values = {"table": "t", "expected_version": 4, "state_fields": {"version": "5"}, "partitions": {}}
    return commands.ingest("q", **{**values, **changed})


REFUSED: dict[str, Callable[[], object]] = {
    "priority": lambda: JobRequest(KEY, "default", Band.NORMAL, 32, 1, 1),
    "cost_bytes": lambda: JobRequest(KEY, "default", Band.NORMAL, 5, 2**50 + 1, 1),
    "version": lambda: JobRequest(KEY, "default", Band.NORMAL, 5, 1, 2**53),
    "payload": lambda: JobRequest(KEY, "default", Band.NORMAL, 5, 1, 1, "é" * 8_193),
    "partition": lambda: JobKey("t", "x" * 16_385, "compact"),
    "quiet_ms": lambda: Debounce(5, 4),
    "slots": lambda: commands.claim("q", worker="w", nonce="n", slots=33, lease_ms=1_000),
    "share_jobs": lambda: Share(33, 1),
    "share_bytes": lambda: Share(2, 2**50 + 1),
    "lease_ms": lambda: commands.claim("q", worker="w", nonce="n", slots=1, lease_ms=999),
    "worker": lambda: commands.claim("q", worker="a b", nonce="n", slots=1, lease_ms=1_000),
    "nonce": lambda: finish(nonce=""),
    "beats": lambda: commands.heartbeat(
        "q", worker="w", beats=[HeartbeatEntry(SPEC.id, Token(1))] * 101, lease_ms=1_000
    ),
    "progress": lambda: commands.heartbeat(
        "q", worker="w", beats=[HeartbeatEntry(SPEC.id, Token(1), "x" * 4_097)], lease_ms=1_000
    ),
    "result": lambda: finish(result="x" * 65_537),
    "counter a": lambda: finish(counters={"a": 2**53}),
    "counters": lambda: finish(counters={str(number): 1 for number in range(101)}),
    "cursor": lambda: ingest(state_fields={"version": "05"}),
    "cursor version": lambda: ingest(state_fields={"version": "4"}),
    "partitions": lambda: ingest(partitions=dict.fromkeys(map(str, range(1_001)), "x")),
    "jobs": lambda: ingest(table="other", jobs=[SPEC]),
    "index of a ledger record's job": lambda: ingest(jobs=[SPEC], ledger=[("{}", 1)]),
    "job": lambda: commands.decide("q", nonce="n", table="other", job=SPEC),
    "limit": lambda: queries.jobs("q", JobState.QUEUED, limit=101),
    "strict_bands": lambda: commands.configure("q", {"strict_bands": 5}),
    "aging": lambda: commands.configure("q", {"aging": 5}),
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_is_out_of_range_is_refused_by_name(field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        REFUSED[field]()
    assert refused.value.field == field


def test_a_reset_may_keep_its_version_and_carry_a_whole_table() -> None:
    partitions = dict.fromkeys(map(str, range(1_001)), "x")
    assert ingest(state_fields={"version": "4"}, partitions=partitions, reset=True).script is ScriptName.INGEST


def test_jobs_of_several_tables_are_not_claimed_to_share_a_transaction() -> None:
    with pytest.raises(InvalidInput, match="slots"):
        commands.claim("q", worker="w", nonce="n", slots=2, lease_ms=1_000, share=Share(2, 1))


def test_a_long_error_is_cut_and_not_refused() -> None:
    assert "x" * limits.MAX_ERROR_CHARS in finish(error="x" * 10_000).args


def test_the_same_ingest_has_the_same_digest_and_another_has_not() -> None:
    first, same, other = ingest(partitions={"a": "1"}), ingest(partitions={"a": "1"}), ingest(partitions={"a": "2"})
    assert first.args == same.args
    assert first.args[2] != other.args[2]


def test_a_newer_schema_is_named_and_not_retried() -> None:
    refused = error_of_reply(ScriptName.CLAIM, "redis:6379", "LWSCHEMA 2 1")
    assert isinstance(refused, PermanentError)
    assert str(refused) == (
        "the queue at redis:6379 has schema 2, this release knows 1: claim was refused; upgrade this process"
    )


@pytest.mark.parametrize("code", ["OOM", "READONLY", "LOADING", "MISCONF", "BUSY"])
def test_a_server_in_trouble_is_a_matter_of_time(code: str) -> None:
    assert isinstance(error_of_reply(ScriptName.CLAIM, "redis:6379", f"{code} something"), RetryableError)


def test_a_key_of_another_type_is_no_fault_of_the_call_and_a_matter_of_time() -> None:
    problem = error_of_reply(ScriptName.CLAIM, "redis:6379", "WRONGTYPE Operation against a key")
    assert isinstance(problem, WrongKey)
    assert isinstance(problem, RetryableError)
    assert "a key at redis:6379 has another type" in str(problem)
    assert str(problem).endswith("WRONGTYPE Operation against a key")


def test_a_script_error_is_ours_and_no_matter_of_time() -> None:
    assert isinstance(error_of_reply(ScriptName.CLAIM, "redis:6379", "ERR user_script:1: attempt"), PermanentError)


def test_silence_is_reported_with_address_and_script() -> None:
    problem = unreachable(ScriptName.FINISH, "redis:6379", 3, OSError("refused"))
    assert "redis:6379 did not answer finish in 3 tries" in str(problem)
    assert [LOST_REPLY.pause_s(failed) for failed in (1, 2)] == [0.1, 0.2]
    assert [LOST_REPLY.is_exhausted(failed) for failed in (2, 3)] == [False, True]
