"""Options of a Unity catalog: what is accepted, and that no error repeats a value."""

import pytest

from shared.unity.options import UnityOptions, is_unity, parse_options

URI = "https://catalog.example.com/api/2.1/unity-catalog"
GOOD = {"type": "unity", "uri": URI, "locations": "s3://lake"}


def test_options_are_read() -> None:
    more = {"token": "dapi0", "timeout-s": "5", "locations": "s3a://lake/, /data/raw"}
    assert parse_options("u", GOOD | more | {"uri": f" {URI}/ "}) == UnityOptions(
        URI, ("s3://lake", "file:///data/raw"), "dapi0", 5.0
    )


def test_by_default_there_is_no_token() -> None:
    found = parse_options("u", GOOD)
    assert (found.token, found.timeout_s) == ("", 30.0)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"uri": ""}, "uri"),
        ({"uri": "catalog.example.com"}, "uri"),
        ({"uri": "ftp://catalog.example.com"}, "uri"),
        ({"uri": "https://user:secret-word@catalog.example.com"}, "uri"),
        ({"uri": f"{URI}?a=secret-word"}, "uri"),
        ({"uri": f"{URI}#a"}, "uri"),
        ({"uri": "https://[secret-word"}, "uri"),
        ({"uri": "https://host:0/"}, "uri"),
        ({"locations": ""}, "locations"),
        ({"locations": " , "}, "locations"),
        ({"locations": "relative/secret-word"}, "locations"),
        ({"locations": "catalog://prod"}, "locations"),
        ({"token": "secret-word\r\nX-Other: 1"}, "token"),
        ({"token": "secret-word ü"}, "token"),
        ({"credentials": "secret-word"}, "no option 'credentials'"),
        ({"timeout-s": "0"}, "timeout-s"),
        ({"timeout-s": "secret-word"}, "timeout-s"),
        ({"timeout-s": "601"}, "timeout-s"),
        ({"timeout-s": "nan"}, "timeout-s"),
        ({"warehouse": "secret-word"}, "warehouse"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_and_not_repeated(wrong: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=named) as refused:
        parse_options("prod", GOOD | wrong)
    assert "catalog prod" in str(refused.value)
    assert "secret-word" not in str(refused.value)


def test_no_token_is_shown() -> None:
    assert "dapi0" not in repr(parse_options("u", GOOD | {"token": "dapi0"}))


@pytest.mark.parametrize(("options", "is_one"), [(GOOD, True), ({}, False), ({"type": "rest"}, False)])
def test_a_unity_catalog_is_known_by_its_type(options: dict[str, str], is_one: bool) -> None:
    assert is_unity(options) is is_one
