"""What cannot be sent or set is refused before it is sent, with the name of the culprit."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidInput, PermanentError, RetryableError
from shared.queue import commands, limits, queries
from shared.queue.admin_commands import SlotLimit, SlotQuota, pause, set_limit, set_weight
from shared.queue.client_settings import SentinelUrl, parse_sentinel_url
from shared.queue.command import LOST_REPLY, Command, WrongKey, error_of_reply, unreachable
from shared.queue.lua_library import ScriptName
from shared.queue.model import (
    Band,
    Debounce,
    HeartbeatEntry,
    JobKey,
    JobRequest,
    JobState,
    RunResult,
    Scope,
    Share,
    Token,
)

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


READ = {
    "redis+sentinel://one/lakewright": SentinelUrl((("one", 26379),), "lakewright", "redis://one/0", {}),
    "redis+sentinel://ann:p%40ss@one:1,[::1]:2,three/primary/5?ssl_ca_certs=/c.pem&sentinel_password=a%2B": SentinelUrl(
        (("one", 1), ("::1", 2), ("three", 26379)),
        "primary",
        "redis://ann:p%40ss@one:1/5?ssl_ca_certs=%2Fc.pem",
        {"password": "a+"},
    ),
    "rediss+sentinel://one/m?sentinel_username=s": SentinelUrl(
        (("one", 26379),), "m", "rediss://one/0", {"username": "s"}
    ),
}


@pytest.mark.parametrize("url", READ)
def test_sentinels_name_and_options_are_read(url: str) -> None:
    assert parse_sentinel_url(url) == READ[url]


@pytest.mark.parametrize("url", ["redis://one:6379/0", "unix:///redis.sock"])
def test_other_urls_name_no_sentinels(url: str) -> None:
    assert parse_sentinel_url(url) is None


@pytest.mark.parametrize(
    "rest",
    [
        "one",
        "one/",
        "/primary",
        "one,/primary",
        "one:0/primary",
        "one:65536/p",
        "one:x/primary",
        "one/primary/x",
    ],
)
def test_what_is_incomplete_is_refused_without_showing_it(rest: str) -> None:
    with pytest.raises(ValueError, match=r"^expected redis\+sentinel://\[user:password@\]host"):
        parse_sentinel_url(f"redis+sentinel://{rest}")


def test_messages_name_the_primary_and_its_sentinels_without_credentials() -> None:
    found = parse_sentinel_url("redis+sentinel://ann:secret@one,two:5/lakewright?sentinel_password=other")
    assert found is not None
    assert found.address == "lakewright at the sentinels one:26379, two:5"


REFUSED_COMMANDS: list[tuple[str, Callable[[], object]]] = [
    ("level", lambda: set_weight("q", Scope.QUEUE, "", 2.0)),
    ("weight", lambda: set_weight("q", Scope.TABLE, "t", 0.009)),
    ("level", lambda: set_limit("q", Scope.BAND, "1", SlotLimit(1))),
    ("name", lambda: pause("q", Scope.QUEUE, "t")),
    ("name", lambda: pause("q", Scope.BAND, "5")),
    ("name", lambda: pause("q", Scope.BAND, "high")),
    ("tenant", lambda: pause("q", Scope.TENANT, "a b")),
    ("limit", lambda: SlotLimit(0)),
    ("quota", lambda: SlotQuota(101)),
]


@pytest.mark.parametrize(("field", "call"), REFUSED_COMMANDS)
def test_what_cannot_be_set_is_refused_by_the_name_of_the_field(field: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as refused:
        call()
    assert refused.value.field == field


@pytest.mark.parametrize(("limit", "text"), [(None, ""), (SlotLimit(3), "3"), (SlotQuota(25), "25%")])
def test_a_limit_is_a_number_of_slots_a_share_of_them_or_none(limit: SlotLimit | SlotQuota | None, text: str) -> None:
    assert set_limit("q", Scope.TABLE, "t", limit).args == ("table", "t", text)


def test_a_pause_names_what_it_holds_and_a_resumption_too() -> None:
    assert pause("q", Scope.BAND, "0").args == ("band", "0", 1)
    assert pause("q", Scope.QUEUE, paused=False).args == ("queue", "", 0)
