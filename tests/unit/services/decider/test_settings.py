"""Every variable is read once, defaults stand where it is unset, and a bad value stops the start by name."""

import asyncio
import traceback
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from decider.gateway.authentication import FAILURES_PER_S
from decider.gateway.credentials import Credentials, parse_tokens
from decider.gateway.rate_limit import BURST_S
from services.actor.settings import actor_settings
from services.catalog_options import parse_catalogs
from services.cli.checks import redis_server
from services.cli.commands import doctor
from services.decider.__main__ import server
from services.decider.build import build_tracker
from services.decider.settings import AccessSettings, Address, DeciderSettings, decider_settings, parse_address
from services.settings import REDIS_URL, format_options, parse_redis_url
from shared.errors import InvalidInput
from shared.policy.policy import MIB
from shared.queue.limits import LEDGER_KEPT, LEDGER_KEPT_TO_ARCHIVE, MAX_GROUPS


def test_an_empty_environment_gives_the_defaults() -> None:
    assert decider_settings({}) == DeciderSettings() == decider_settings({"LAKEWRIGHT_ROOTS": " "})


def test_every_variable_is_read() -> None:
    found = decider_settings(
        {
            "LAKEWRIGHT_REDIS_URL": "redis://r:1/0",
            "LAKEWRIGHT_QUEUE": "q",
            "LAKEWRIGHT_HTTP_ADDRESS": "[::1]:80",
            "LAKEWRIGHT_TOKEN": "t0ken-for-tests-only",
            "LAKEWRIGHT_ROOTS": "s3://a/b, /c",
            "LAKEWRIGHT_BUCKETS": "demo=file:///tables,x=s3://y",
            "LAKEWRIGHT_SWEEP_S": "2.5",
            "LAKEWRIGHT_STORE_OPTIONS": '{"aws_region": "eu-west-1", "allow_http": true}',
            "LAKEWRIGHT_POLICY": "target-file-size=1mb,lakewright.min-input-files=4",
            "LAKEWRIGHT_MAX_BODY_BYTES": "2048",
            "LAKEWRIGHT_ARCHIVE": "s3://a/ledger",
            "LAKEWRIGHT_LOG_LEVEL": "DEBUG",
        }
    )
    assert found.archives.ledger == "s3://a/ledger"
    assert found.address == Address("::1", 80)
    assert found.locations.roots == ("s3://a/b", "/c")
    assert found.locations.buckets == {"demo": "file:///tables", "x": "s3://y"}
    assert (found.tracking.sweep_s, found.limits.max_body_bytes, found.log_level) == (2.5, 2048, "debug")
    assert found.locations.store_options.of("s3", "lake") == {"aws_region": "eu-west-1", "allow_http": "true"}
    assert (found.tracking.policy.target_bytes, found.tracking.policy.min_input_files) == (MIB, 4)
    assert (found.redis_url, found.queue, found.access.token) == ("redis://r:1/0", "q", "t0ken-for-tests-only")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAKEWRIGHT_HTTP_ADDRESS", "7420"),
        ("LAKEWRIGHT_HTTP_ADDRESS", "::1:7420"),
        ("LAKEWRIGHT_HTTP_ADDRESS", "host:70000"),
        ("LAKEWRIGHT_TOKEN", "short"),
        ("LAKEWRIGHT_BUCKETS", "demo"),
        ("LAKEWRIGHT_SWEEP_S", "0"),
        ("LAKEWRIGHT_SWEEP_S", "nan"),
        ("LAKEWRIGHT_SWEEP_S", "often"),
        ("LAKEWRIGHT_STORE_OPTIONS", "[]"),
        ("LAKEWRIGHT_STORE_OPTIONS", '{"a": {}}'),
        ("LAKEWRIGHT_STORE_OPTIONS", '{"s3://lake/table": {}}'),
        ("LAKEWRIGHT_STORE_OPTIONS", '{"s3://lake": {"region": []}}'),
        ("LAKEWRIGHT_POLICY", "target-file-size"),
        ("LAKEWRIGHT_POLICY", "target=1mb"),
        ("LAKEWRIGHT_POLICY", "fan-in=2,full-file-threshold=0.25"),
        ("LAKEWRIGHT_MAX_BODY_BYTES", "1"),
        ("LAKEWRIGHT_QUEUE", "default/etl"),
        ("LAKEWRIGHT_GROUPS", "etl,a b"),
        ("LAKEWRIGHT_GROUPS", "Etl"),
        ("LAKEWRIGHT_GROUPS", '{"etl": "balanced"}'),
        ("LAKEWRIGHT_GROUPS", '{"etl": {"queue": "hot"}}'),
        ("LAKEWRIGHT_GROUPS", ",".join(f"g{number}" for number in range(MAX_GROUPS + 1))),
        ("LAKEWRIGHT_LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_variable(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name) as raised:
        decider_settings({name: value})
    assert raised.value.field == name
    if name == "LAKEWRIGHT_TOKEN":
        assert value not in str(raised.value)


def test_groups_are_a_list_or_have_defaults() -> None:
    listed = decider_settings({"LAKEWRIGHT_GROUPS": "etl, nightly"}).tracking.groups
    assert listed == {"etl": {}, "nightly": {}}
    stated = '{"etl": {"job-order": "balanced"}, "nightly": {}}'
    found = decider_settings({"LAKEWRIGHT_GROUPS": stated}).tracking.groups
    assert found == {"etl": {"lakewright.job-order": "balanced"}, "nightly": {}}


def test_an_actor_serves_the_queue_or_one_group_of_it() -> None:
    settings = ({}, {"LAKEWRIGHT_GROUP": "default"}, {"LAKEWRIGHT_GROUP": "etl"})
    assert [actor_settings(one).queue for one in settings] == ["default", "default", "default/etl"]
    assert actor_settings({"LAKEWRIGHT_QUEUE": "q", "LAKEWRIGHT_GROUP": "etl"}).queue == "q/etl"
    with pytest.raises(InvalidInput, match="LAKEWRIGHT_GROUP"):
        actor_settings({"LAKEWRIGHT_GROUP": "q/etl"})


def test_an_address_has_a_host_and_a_port() -> None:
    assert parse_address("localhost:0") == Address("localhost", 0)


@pytest.mark.parametrize(
    "setting",
    [
        {"LAKEWRIGHT_POLICY": "vacuum=on"},
        {"LAKEWRIGHT_TENANTS": '{"sales": {"lakewright.vacuum": "on"}}'},
        {"LAKEWRIGHT_GROUPS": '{"etl": {"lakewright.vacuum": "on"}}'},
        {"LAKEWRIGHT_POLICY": "primary-key=id,sequence-by=ts"},
        {"LAKEWRIGHT_POLICY": "sequence-by=ts"},
        {"LAKEWRIGHT_TENANTS": '{"sales": {"lakewright.primary-key": "id", "lakewright.sequence-by": "ts"}}'},
        {"LAKEWRIGHT_POLICY": "yield-to-writers=on"},
        {"LAKEWRIGHT_GROUPS": '{"etl": {"lakewright.yield-to-writers": "on"}}'},
    ],
)
def test_no_default_of_the_service_a_tenant_or_a_group_switches_deletions_on(setting: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="no default does"):
        decider_settings(setting)


def test_options_of_kafka_are_texts_and_topics_need_brokers() -> None:
    stated = '{"bootstrap.servers": "k:9092", "fetch.wait.max.ms": 100, "enable.ssl.certificate.verification": true}'
    found = decider_settings({"LAKEWRIGHT_KAFKA_TOPICS": "commits, more", "LAKEWRIGHT_KAFKA_OPTIONS": stated}).access
    assert found.kafka_topics == ("commits", "more")
    assert found.kafka_options == {
        "bootstrap.servers": "k:9092",
        "fetch.wait.max.ms": "100",
        "enable.ssl.certificate.verification": "true",
    }
    with pytest.raises(InvalidInput, match=r"bootstrap\.servers is missing"):
        decider_settings({"LAKEWRIGHT_KAFKA_TOPICS": "commits"})


@pytest.mark.parametrize("value", ["no JSON with a password", '["password"]', '{"sasl.password": ["password"]}'])
def test_an_error_about_options_of_kafka_does_not_show_them(value: str) -> None:
    with pytest.raises(InvalidInput, match="LAKEWRIGHT_KAFKA_OPTIONS: the value cannot be used") as problem:
        decider_settings({"LAKEWRIGHT_KAFKA_TOPICS": "commits", "LAKEWRIGHT_KAFKA_OPTIONS": value})
    assert "password" not in str(problem.value)
    assert "password" not in str(problem.value.__cause__)


@pytest.mark.parametrize(
    ("environment", "kept"), [({}, LEDGER_KEPT), ({"LAKEWRIGHT_ARCHIVE": "s3://a/ledger"}, LEDGER_KEPT_TO_ARCHIVE)]
)
def test_an_archive_has_time_to_take_decisions_over(environment: dict[str, str], kept: int) -> None:
    assert LEDGER_KEPT < LEDGER_KEPT_TO_ARCHIVE
    parts: Any = SimpleNamespace(
        executor=None, formats=SimpleNamespace(open=None), now_ms=None, defaults=None, states=None, actions=()
    )
    assert build_tracker(decider_settings(environment), parts, parts, parts).ledger_kept == kept


TOKEN = "t0ken-for-tests-only"  # noqa: S105


@pytest.mark.parametrize(
    ("proxies", "is_slowed_down"), [((), True), (("10.0.0.0/8",), True), (("10.0.0.1", "127.0.0.0/8"), False)]
)
def test_a_client_that_guesses_tokens_is_slowed_down_whatever_address_it_claims_but_by_a_named_proxy(
    proxies: tuple[str, ...], is_slowed_down: bool
) -> None:
    known = Credentials(parse_tokens(f"viewer:{TOKEN}"))
    serving = server(DeciderSettings(access=AccessSettings(known=known, trusted_proxies=proxies)))
    serving.config.load()

    async def guess() -> list[int]:
        transport = httpx.ASGITransport(serving.config.loaded_app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7420") as client:
            return [
                (
                    await client.get(
                        "/v1/tables",
                        headers={"authorization": "Bearer wrong", "x-forwarded-for": f"192.0.2.{number}"},
                    )
                ).status_code
                for number in range(int(2 * FAILURES_PER_S * BURST_S))
            ]

    assert (429 in asyncio.run(guess())) is is_slowed_down


UNUSABLE = [
    "redis://:s3cr3t/Part@host:6379/0",
    "redis://:1234/s3cr3t@host:6379/0",
    "redis://user:1234?s3cr3t@host:6379/0",
    "redis://user:1234#s3cr3t",
    "redis://:s3cr3t[x@host:6379/0",
    "redis://:s3cr3t\u2100@host:6379/0",
    "redis://host:s3cr3t",
    "redis://host:70000",
    "redis://host/s3cr3t",
    "redis://",
    "http://:s3cr3t@host:6379",
    "unix://",
    "redis+sentinel://:s3cr3t/Part@host/primary",
    "redis+sentinel://:s3cr3t@host:26379",
    "redis+sentinel://:s3cr3t@host,/primary",
    "localhost:6379",
    "s3cr3t",
]


@pytest.mark.parametrize("url", UNUSABLE)
def test_a_url_that_cannot_be_used_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput, match=REDIS_URL) as refused:
        decider_settings({REDIS_URL: url})
    reported = "".join(traceback.format_exception(refused.value)) + doctor.to_json(redis_server.check_redis(url))
    assert "%2F" in reported
    assert "s3cr3t" not in reported


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:7421/0",
        "redis://host",
        "redis://:s3cr3t%2FPart@host:6379/0",
        "redis://user:a:b@c@host:6379/",
        "rediss://user:pass@[::1]:6379/3?ssl_cert_reqs=none",
        "unix:///run/redis.sock?db=1",
        "redis+sentinel://user:pass@one:26379,two,[::1]:1/primary/3?sentinel_password=other",
        "unix://user:pass@/run/redis.sock",
    ],
)
def test_a_url_that_can_be_used_is_left_as_it_is(url: str) -> None:
    assert parse_redis_url(f" {url}\n") == url


def test_catalogs_are_read_by_name() -> None:
    text = '{"prod": {"uri": "https://c", "credential": "id:secret"}, "test.2": {}}'
    assert parse_catalogs(text) == {"prod": {"uri": "https://c", "credential": "id:secret"}, "test.2": {}}
    read = format_options({"LAKEWRIGHT_CATALOGS": text, "LAKEWRIGHT_ICEBERG_FOLDERS": "true"})
    assert (sorted(read.catalogs), read.iceberg_folders) == (["prod", "test.2"], True)
    assert not format_options({}).has_iceberg


@pytest.mark.parametrize(
    "text",
    [
        *("[]", '{"a/b": {}}', '{"a": "s3cret"}', '{"a": {"token": ["s3cret"]}}', "s3cret"),
        '{"u": {"type": "unity", "uri": "s3cret"}}',
    ],
)
def test_what_cannot_be_used_is_refused_without_its_values(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        format_options({"LAKEWRIGHT_CATALOGS": text})
    assert "LAKEWRIGHT_CATALOGS" in str(refused.value)
    assert "s3cret" not in str(refused.value)
