"""A URL of Redis that cannot be used stops every program with a sentence that shows nothing of the password."""

import traceback

import pytest

from services.cli.checks import redis_server
from services.cli.commands import doctor
from services.decider.settings import decider_settings
from services.settings import REDIS_URL, parse_redis_url
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
