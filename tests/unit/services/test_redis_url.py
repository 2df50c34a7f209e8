"""URLs and options that cannot be used stop every program with a sentence that shows no password."""

import traceback

import pytest

from services.catalog_options import parse_catalogs
from services.cli.checks import redis_server
from services.cli.commands import doctor
from services.decider.settings import decider_settings
from services.settings import REDIS_URL, format_options, parse_redis_url
from shared.errors import InvalidInput

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
