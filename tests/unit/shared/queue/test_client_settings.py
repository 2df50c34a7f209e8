"""URLs that name sentinels, as people write them."""

import pytest

from shared.queue.client_settings import SentinelUrl, parse_sentinel_url

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
